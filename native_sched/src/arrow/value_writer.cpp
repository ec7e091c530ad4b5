#include "arrow/value_writer.hpp"

#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace rayelastic {

namespace {

using Kind = ValueForm::Kind;

struct OwnedArray {
  std::vector<std::uint8_t> validity;
  std::vector<char> values;  // or offsets
  std::vector<char> heap;
  const void* pointers[3] = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
};

struct OwnedSchema {
  std::string format;
  std::string name;
  std::string metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
};

template <typename Struct>
void release_children(Struct* parent) {
  for (std::int64_t i = 0; i < parent->n_children; ++i) {
    Struct* child = parent->children[i];
    if (child->release != nullptr) child->release(child);
  }
}

void release_array(ArrowArray* array) {
  release_children(array);
  delete static_cast<OwnedArray*>(array->private_data);
  array->release = nullptr;
}

void release_schema(ArrowSchema* schema) {
  release_children(schema);
  delete static_cast<OwnedSchema*>(schema->private_data);
  schema->release = nullptr;
}

// The key and value that Arrow knows a UUID by.
std::string uuid_metadata() {
  std::string metadata;
  const auto put = [&metadata](const std::string& text) {
    const auto size = static_cast<std::int32_t>(text.size());
    metadata.append(reinterpret_cast<const char*>(&size), sizeof size);
    metadata += text;
  };
  const std::int32_t pairs = 2;
  metadata.append(reinterpret_cast<const char*>(&pairs), sizeof pairs);
  put("ARROW:extension:name"), put("arrow.uuid"), put("ARROW:extension:metadata"), put("");
  return metadata;
}

std::string arrow_format(const ValueForm& form) {
  switch (form.kind) {
    case Kind::Enum:
      return form.numbers ? "l" : "u";
    case Kind::List:
      return "+l";
    case Kind::Struct:
      return "+s";
    case Kind::Map:
      return "+m";
    case Kind::Object:
      return "z";
    case Kind::Json:
      return "u";
    case Kind::Plain:
      break;
  }
  if (form.type == Type::String) return "u";
  return form.type == Type::Binary ? "z" : form.format;
}

// One array of the tree, that values are appended to.
class Target {
 public:
  explicit Target(const ValueForm& form) : form_(form), owned_(std::make_unique<OwnedArray>()) {
    for (const ValueForm& child : form.children) children_.emplace_back(child);
    if (has_offsets()) number(owned_->values, 0);
  }

  // Below a null a field that isn't nullable has zeroes, as it has no null.
  void absent(bool null = true) {
    mark(!null);
    if (null) ++nulls_;
    if (has_offsets()) return end();
    if (form_.kind == Kind::Struct) {
      for (Target& child : children_) child.absent(child.form_.nullable);
    } else if (form_.type == Type::Bool) {
      bit(owned_->values, rows_, false);
    } else {
      owned_->values.insert(owned_->values.end(), width(), '\0');
    }
    ++rows_;
  }

  void append(ValueBytes bytes) {
    mark(true);
    switch (form_.kind) {
      case Kind::List:
        sequence(SequenceView(bytes, form_.children[0]), children_[0]);
        return end();
      case Kind::Map: {
        const MapView map = map_view(bytes, form_);
        sequence(map.keys, children_[0]);
        sequence(map.values, children_[1]);
        return end();
      }
      case Kind::Struct: {
        const StructView fields(bytes, form_);
        for (std::size_t i = 0; i < children_.size(); ++i) fields.is_valid(i) ? children_[i].append(fields.at(i)) : children_[i].absent();
        break;
      }
      case Kind::Enum:
        if (member(bytes)) return end();
        break;
      default:
        if (form_.is_variable()) {
          owned_->heap.insert(owned_->heap.end(), bytes.begin(), bytes.end());
          return end();
        }
        if (form_.type == Type::Bool) {
          bit(owned_->values, rows_, bytes[0] != 0);
        } else {
          owned_->values.insert(owned_->values.end(), bytes.begin(), bytes.end());
        }
    }
    ++rows_;
  }

  void finish(ArrowArray* out) {
    OwnedArray& owned = *owned_;
    *out = {};
    out->length = static_cast<std::int64_t>(rows_);
    out->null_count = static_cast<std::int64_t>(nulls_);
    owned.heap.reserve(1), owned.values.reserve(1);  // so that they have an address
    owned.pointers[0] = nulls_ == 0 ? nullptr : owned.validity.data();
    owned.pointers[1] = owned.values.data();
    owned.pointers[2] = owned.heap.data();
    const bool nested = form_.kind == Kind::List || form_.kind == Kind::Map;
    out->n_buffers = form_.kind == Kind::Struct ? 1 : !nested && has_offsets() ? 3 : 2;
    out->buffers = owned.pointers;
    if (form_.kind == Kind::Map) {  // its entries are a struct of keys and values
      auto entries = std::make_unique<OwnedArray>();
      ArrowArray array{};
      array.length = static_cast<std::int64_t>(children_[0].rows_);
      array.n_buffers = 1;
      array.buffers = entries->pointers;
      adopt(*entries, array);
      array.release = release_array;
      array.private_data = entries.release();
      owned.children.push_back(array);
      owned.child_pointers.push_back(owned.children.data());
      out->n_children = 1;
      out->children = owned.child_pointers.data();
    } else {
      adopt(owned, *out);
    }
    out->release = release_array;
    out->private_data = owned_.release();
  }

 private:
  [[nodiscard]] bool has_offsets() const noexcept { return form_.is_variable() ? form_.kind != Kind::Struct : is_text_of_enum(); }
  [[nodiscard]] bool is_text_of_enum() const noexcept { return form_.kind == Kind::Enum && !form_.numbers; }
  [[nodiscard]] std::size_t width() const noexcept { return form_.kind == Kind::Enum ? sizeof(std::int64_t) : size_of(form_.type); }

  // The member's text or number. True: a text.
  bool member(ValueBytes bytes) {
    std::int32_t index;
    std::memcpy(&index, bytes.data(), sizeof index);
    if (index < 0 || static_cast<std::size_t>(index) >= form_.members.size()) throw ValueError("a value is no member of its enum");
    const std::string& text = form_.members[static_cast<std::size_t>(index)];
    if (form_.numbers) {
      const std::int64_t value = std::stoll(text);
      const auto* raw = reinterpret_cast<const char*>(&value);
      owned_->values.insert(owned_->values.end(), raw, raw + sizeof value);
    } else {
      owned_->heap.insert(owned_->heap.end(), text.begin(), text.end());
    }
    return !form_.numbers;
  }

  static void sequence(const SequenceView& items, Target& into) {
    for (std::size_t i = 0; i < items.size(); ++i) items.is_valid(i) ? into.append(items.at(i)) : into.absent();
  }

  void end() {
    const bool nested = form_.kind == Kind::List || form_.kind == Kind::Map;
    number(owned_->values, nested ? children_[0].rows_ : owned_->heap.size());
    ++rows_;
  }

  static void number(std::vector<char>& values, std::size_t number) {
    if (number > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
      throw ValueError("more than 2 GiB in one column of a batch");
    const auto narrow = static_cast<std::int32_t>(number);
    const auto* raw = reinterpret_cast<const char*>(&narrow);
    values.insert(values.end(), raw, raw + sizeof narrow);
  }

  template <typename Bytes>
  static void bit(Bytes& bits, std::size_t index, bool value) {
    if (index % 8 == 0) bits.push_back({});
    if (value) bits[index / 8] = static_cast<typename Bytes::value_type>(static_cast<unsigned char>(bits[index / 8]) | 1U << (index % 8));
  }

  void mark(bool valid) { bit(owned_->validity, rows_, valid); }

  void adopt(OwnedArray& owned, ArrowArray& array) {
    owned.children.resize(children_.size());
    for (std::size_t i = 0; i < children_.size(); ++i) {
      children_[i].finish(&owned.children[i]);
      owned.child_pointers.push_back(&owned.children[i]);
    }
    array.n_children = static_cast<std::int64_t>(children_.size());
    array.children = owned.child_pointers.data();
  }

  const ValueForm& form_;
  std::unique_ptr<OwnedArray> owned_;
  std::vector<Target> children_;
  std::size_t rows_ = 0;
  std::size_t nulls_ = 0;
};

}  // namespace

void export_column(const Field& field, const GatheredColumn& column, ArrowArray* out) {
  Target target(*field.form);
  const bool variable = field.form->is_variable();
  try {
    for (std::size_t i = 0; i < column.rows; ++i) {
      if (column.validity != nullptr && (column.validity[i / 8] >> (i % 8) & 1U) == 0) {
        target.absent();
      } else if (variable) {
        target.append({column.heap + column.values[i], static_cast<std::size_t>(column.values[i + 1] - column.values[i])});
      } else {
        target.append({reinterpret_cast<const char*>(column.values + i), sizeof(std::int32_t)});
      }
    }
  } catch (const ValueError& error) {
    throw ArrowError("field '" + field.name + "': " + error.what());
  }
  target.finish(out);
}

void export_type(std::string format, std::string name, std::int64_t flags, std::size_t children, ArrowSchema* out) {
  auto* owned = new OwnedSchema{std::move(format), std::move(name), {}, std::vector<ArrowSchema>(children), {}};
  if (owned->format == "w:16") owned->metadata = uuid_metadata();
  for (ArrowSchema& child : owned->children) owned->pointers.push_back(&child);
  *out = {};
  out->format = owned->format.c_str();
  out->name = owned->name.c_str();
  out->metadata = owned->metadata.empty() ? nullptr : owned->metadata.data();
  out->flags = flags;
  out->n_children = static_cast<std::int64_t>(children);
  out->children = owned->pointers.data();
  out->release = release_schema;
  out->private_data = owned;
}

void export_form(const ValueForm& form, const std::string& name, bool nullable, ArrowSchema* out) {
  const std::int64_t flags = nullable ? ARROW_FLAG_NULLABLE : 0;
  export_type(arrow_format(form), name, flags, form.kind == Kind::Map ? 1 : form.children.size(), out);
  if (form.kind == Kind::Map) {
    ArrowSchema* const entries = out->children[0];
    export_type("+s", "entries", 0, 2, entries);
    export_form(form.children[0], "key", false, entries->children[0]);
    export_form(form.children[1], "value", form.children[1].nullable, entries->children[1]);
    return;
  }
  for (std::size_t i = 0; i < form.children.size(); ++i) {
    const ValueForm& child = form.children[i];
    export_form(child, form.kind == Kind::List ? "item" : child.name, child.nullable, out->children[i]);
  }
}

}  // namespace rayelastic
