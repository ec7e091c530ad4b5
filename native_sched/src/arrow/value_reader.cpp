#include "arrow/value_reader.hpp"

#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace rayelastic {

namespace {

using Kind = ValueForm::Kind;

bool bit_at(const void* bits, std::int64_t index) noexcept {
  return (static_cast<const std::uint8_t*>(bits)[index / 8] >> (index % 8) & 1U) != 0;
}

// One array of the tree, checked against its form; rows are counted from the array's offset.
class Source {
 public:
  Source(const ValueForm& form, const ArrowSchema& type, const ArrowArray& array, std::string path)
      : form_(form), array_(array), format_(type.format == nullptr ? "" : type.format), path_(std::move(path)) {
    if (type.dictionary != nullptr) refuse("is dictionary-encoded; cast it to its value type first");
    if (array.offset < 0 || array.length < 0 || array.n_children != type.n_children) refuse("is damaged");
    if (array.null_count != 0 && array.n_buffers > 0) validity_ = array.buffers[0];
    switch (form.kind) {
      case Kind::Plain:
      case Kind::Object:
      case Kind::Json:
        plain();
        return;
      case Kind::Enum:
        for (std::size_t i = 0; i < form.members.size(); ++i) members_.emplace(form.members[i], static_cast<std::int32_t>(i));
        if (form.numbers ? !whole_number() : !text('u')) other();
        return;
      case Kind::List:
        if (format_.starts_with("+w:")) {
          items_ = std::stoll(format_.substr(3));
        } else if (format_ != "+l" && format_ != "+L") {
          other();
        }
        needs_buffers(items_ >= 0 ? 1 : 2);
        child(type, 0, form.children[0], "[]");
        return;
      case Kind::Map: {
        if (format_ != "+m" || array.n_children != 1 || array.children[0]->n_children != 2) other();
        needs_buffers(2);
        const ArrowArray& entries = *array.children[0];
        entries_ = &entries;
        children_.push_back(
            std::make_unique<Source>(form.children[0], *type.children[0]->children[0], *entries.children[0], path_ + ".key"));
        children_.push_back(
            std::make_unique<Source>(form.children[1], *type.children[0]->children[1], *entries.children[1], path_ + ".value"));
        return;
      }
      case Kind::Struct:
        if (format_ != "+s") other();
        for (const ValueForm& field : form.children) {
          std::int64_t index = 0;
          while (index < type.n_children && field.name != type.children[index]->name) ++index;
          if (index == type.n_children) refuse("has no field '" + field.name + "'");
          child(type, index, field, "." + field.name);
        }
    }
  }

  [[nodiscard]] bool is_valid(std::int64_t row) const noexcept { return validity_ == nullptr || bit_at(validity_, array_.offset + row); }

  // A value of fixed width.
  void put(std::int64_t row, char* to) const {
    check(row);
    const std::int64_t at = array_.offset + row;
    if (form_.kind == Kind::Enum) {
      const std::int32_t number = member(at);
      std::memcpy(to, &number, sizeof number);
    } else if (form_.type == Type::Bool) {
      *to = static_cast<char>(bit_at(array_.buffers[1], at));
    } else {
      const std::size_t width = size_of(form_.type);
      std::memcpy(to, static_cast<const char*>(array_.buffers[1]) + static_cast<std::size_t>(at) * width, width);
    }
  }

  // One of variable width.
  void append(std::int64_t row, std::string& out) const {
    check(row);
    switch (form_.kind) {
      case Kind::List: {
        const auto [begin, end] = items(row);
        return sequence(*children_[0], form_.children[0], begin, end, out);
      }
      case Kind::Map: {
        const auto [begin, end] = items(row);
        MapWriter map(out);
        sequence(*children_[0], form_.children[0], begin + entries_->offset, end + entries_->offset, out);
        map.keys_written();
        return sequence(*children_[1], form_.children[1], begin + entries_->offset, end + entries_->offset, out);
      }
      case Kind::Struct: {
        ValueWriter fields(out, form_);
        for (std::size_t i = 0; i < children_.size(); ++i) give(*children_[i], form_.children[i], array_.offset + row, fields, out);
        return;
      }
      default:
        out += bytes_at(array_.offset + row);
    }
  }

 private:
  static void give(const Source& from, const ValueForm& form, std::int64_t row, ValueWriter& writer, std::string& out) {
    if (!from.is_valid(row)) {
      if (!form.nullable) from.refuse("isn't nullable but null in a row");
      writer.absent();
    } else if (form.is_variable()) {
      writer.begin();
      from.append(row, out);
      writer.end();
    } else {
      from.put(row, writer.fixed());
    }
  }

  static void sequence(const Source& from, const ValueForm& item, std::int64_t begin, std::int64_t end, std::string& out) {
    ValueWriter writer(out, item, static_cast<std::size_t>(end - begin));
    for (std::int64_t row = begin; row < end; ++row) give(from, item, row, writer, out);
  }

  void plain() {
    if (form_.is_variable()) {
      if (!text(form_.type == Type::String ? 'u' : 'z')) other();
      return;
    }
    const bool zoned = form_.type == Type::Timestamp && format_.substr(0, 4) == std::string_view(form_.format).substr(0, 4);
    if (!zoned && format_ != form_.format) other();
    needs_buffers(2);
  }

  bool text(char letter) {
    views_ = format_ == std::string{'v', letter};
    large_ = format_ == std::string{static_cast<char>(letter - 'a' + 'A')};
    needs_buffers(views_ ? 2 : 3);
    return views_ || large_ || format_ == std::string{letter};
  }

  bool whole_number() {
    needs_buffers(2);
    return format_.size() == 1 && std::string_view("csilCSIL").find(format_[0]) != std::string_view::npos;
  }

  void child(const ArrowSchema& type, std::int64_t index, const ValueForm& form, const std::string& name) {
    if (index >= array_.n_children) refuse("has no children");
    children_.push_back(std::make_unique<Source>(form, *type.children[index], *array_.children[index], path_ + name));
  }

  // The text or bytes at an index, within the buffers.
  [[nodiscard]] std::string_view bytes_at(std::int64_t at) const {
    if (views_) {
      struct View {
        std::int32_t length;
        char prefix[4];
        std::int32_t buffer, offset;
      } view;
      const char* const place = static_cast<const char*>(array_.buffers[1]) + static_cast<std::size_t>(at) * sizeof view;
      std::memcpy(&view, place, sizeof view);
      if (view.length < 0) refuse("has a text of a negative length");
      if (view.length <= 12) return {place + 4, static_cast<std::size_t>(view.length)};
      const std::int64_t heaps = array_.n_buffers - 3;
      if (view.buffer < 0 || view.buffer >= heaps || view.offset < 0 ||
          static_cast<const std::int64_t*>(array_.buffers[array_.n_buffers - 1])[view.buffer] - view.offset < view.length)
        refuse("has a text that lies outside of its buffers");
      return {static_cast<const char*>(array_.buffers[2 + view.buffer]) + view.offset, static_cast<std::size_t>(view.length)};
    }
    const auto [begin, end] = bounds(at);
    return {static_cast<const char*>(array_.buffers[2] != nullptr ? array_.buffers[2] : "") + begin, static_cast<std::size_t>(end - begin)};
  }

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> bounds(std::int64_t at) const {
    const auto between = [&]<class Offset>(Offset) -> std::pair<std::int64_t, std::int64_t> {
      const auto* offsets = static_cast<const Offset*>(array_.buffers[1]);
      return {offsets[at], offsets[at + 1]};
    };
    const auto found = large_ || format_ == "+L" ? between(std::int64_t{}) : between(std::int32_t{});
    if (found.first < 0 || found.second < found.first) refuse("has offsets that run backwards");
    return found;
  }

  // The rows of a list's items, or of a map's entries.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> items(std::int64_t row) const {
    const std::int64_t at = array_.offset + row;
    return items_ >= 0 ? std::pair(at * items_, (at + 1) * items_) : bounds(at);
  }

  [[nodiscard]] std::int32_t member(std::int64_t at) const {
    const std::string shown = form_.numbers ? std::to_string(number_at(at)) : std::string(bytes_at(at));
    const auto found = members_.find(shown);
    if (found == members_.end()) refuse("has the value '" + shown + "', which is no member of its enum");
    return found->second;
  }

  [[nodiscard]] std::int64_t number_at(std::int64_t at) const noexcept {
    const void* values = array_.buffers[1];
    switch (format_[0]) {
      case 'c':
        return static_cast<const std::int8_t*>(values)[at];
      case 'C':
        return static_cast<const std::uint8_t*>(values)[at];
      case 's':
        return static_cast<const std::int16_t*>(values)[at];
      case 'S':
        return static_cast<const std::uint16_t*>(values)[at];
      case 'i':
        return static_cast<const std::int32_t*>(values)[at];
      case 'I':
        return static_cast<const std::uint32_t*>(values)[at];
      default:
        return static_cast<const std::int64_t*>(values)[at];
    }
  }

  void check(std::int64_t row) const {
    if (row < 0 || row >= array_.length) refuse("has fewer values than what refers to it");
  }

  void needs_buffers(std::int64_t count) const {
    if (array_.n_buffers < count || (count > 1 && array_.length > 0 && array_.buffers[1] == nullptr)) refuse("has too few buffers");
  }

  [[noreturn]] void other() const {
    refuse("has Arrow format '" + format_ + "' in the batch, which isn't what the schema says; cast it first");
  }
  [[noreturn]] void refuse(const std::string& problem) const { throw ArrowError("field '" + path_ + "' " + problem); }

  const ValueForm& form_;
  const ArrowArray& array_;
  std::string format_;
  std::string path_;
  const void* validity_ = nullptr;  // null: all present
  bool views_ = false;
  bool large_ = false;
  std::int64_t items_ = -1;              // of each list of a fixed size
  const ArrowArray* entries_ = nullptr;  // of a map
  std::unordered_map<std::string, std::int32_t> members_;
  std::vector<std::unique_ptr<Source>> children_;
};

}  // namespace

EncodedColumn encode_column(const Field& field, const ArrowSchema& type, const ArrowArray& array, std::size_t first, std::size_t count) {
  const Source source(*field.form, type, array, field.name);
  EncodedColumn column;
  const bool variable = field.form->is_variable();
  if (variable) {
    column.offsets.reserve(count + 1);
    column.offsets.push_back(0);
  } else {
    column.numbers.resize(count);
  }
  column.validity.resize((count + 7) / 8);
  try {
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::int64_t>(first + i);
      const bool valid = source.is_valid(row);
      if (valid) column.validity[i / 8] = static_cast<std::uint8_t>(column.validity[i / 8] | 1U << (i % 8));
      if (valid && variable) source.append(row, column.bytes);
      if (valid && !variable) source.put(row, reinterpret_cast<char*>(&column.numbers[i]));
      if (variable) column.offsets.push_back(static_cast<std::int64_t>(column.bytes.size()));
    }
  } catch (const ValueError& error) {
    throw ArrowError("field '" + field.name + "': " + error.what());
  }
  column.bytes.append(16, '\0');  // short texts are read in words
  return column;
}

}  // namespace rayelastic
