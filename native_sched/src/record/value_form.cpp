#include "rayelastic/record/value_form.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

namespace rayelastic {

namespace {

constexpr std::size_t kNumber = sizeof(std::uint32_t);

std::uint32_t number_at(ValueBytes bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < kNumber) throw ValueError("a value ends too soon");
  std::uint32_t number;
  std::memcpy(&number, bytes.data() + at, kNumber);
  return number;
}

void put_number(std::string& out, std::size_t at, std::size_t number) {
  if (number > std::numeric_limits<std::uint32_t>::max()) throw ValueError("a value has 4 GiB or more");
  const auto narrow = static_cast<std::uint32_t>(number);
  std::memcpy(out.data() + at, &narrow, kNumber);
}

ValueBytes part(ValueBytes bytes, std::size_t begin, std::size_t end) {
  if (begin > end || end > bytes.size()) throw ValueError("a part of a value lies outside of it");
  return bytes.subspan(begin, end - begin);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : all_(text), rest_(text) {}

  ValueForm whole() {
    ValueForm form = next();
    if (!rest_.empty()) refuse();
    return form;
  }

 private:
  ValueForm next() {
    ValueForm form;
    if (!rest_.starts_with('+')) {
      form.format = word();
      form.type = type_of_format(form.format, "");
    } else {
      if (rest_.size() < 2) refuse();
      form.format = rest_.substr(0, 2);
      rest_.remove_prefix(2);
      made(form);
    }
    if (rest_.starts_with('?')) {
      form.nullable = true;
      rest_.remove_prefix(1);
    }
    return form;
  }

  void made(ValueForm& form) {
    using Kind = ValueForm::Kind;
    form.type = Type::Binary;
    switch (form.format[1]) {
      case 'o':
        form.kind = Kind::Object;
        return;
      case 'j':
        form.kind = Kind::Json;
        form.type = Type::String;
        return;
      case 'e':
        form.kind = Kind::Enum;
        form.type = Type::Int32;
        take('<');
        (void)word();  // its class
        take(';');
        form.numbers = word() == "l";
        while (rest_.starts_with(';')) {
          take(';');
          form.members.push_back(decoded(word()));
        }
        break;
      case 'l':
      case 't':
        form.kind = Kind::List;
        take('<');
        form.children.push_back(next());
        break;
      case 'm':
        form.kind = Kind::Map;
        take('<');
        form.children.push_back(next());
        take(';');
        form.children.push_back(next());
        break;
      case 's':
        form.kind = Kind::Struct;
        take('<');
        (void)word();  // its class
        while (rest_.starts_with(';')) {
          take(';');
          const std::string name = word('=');
          take('=');
          form.children.push_back(next());
          form.children.back().name = name;
        }
        if (form.children.empty()) refuse();
        break;
      default:
        refuse();
    }
    take('>');
  }

  void take(char expected) {
    if (!rest_.starts_with(expected)) refuse();
    rest_.remove_prefix(1);
  }

  std::string word(char also = ';') {
    const std::size_t end = std::min(rest_.find_first_of(";<>?"), rest_.find(also));
    std::string found(rest_.substr(0, end));
    rest_.remove_prefix(found.size());
    return found;
  }

  static std::string decoded(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '%' && i + 2 < text.size()) {
        result += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
        i += 2;
      } else {
        result += text[i];
      }
    }
    return result;
  }

  [[noreturn]] void refuse() const { throw std::invalid_argument("'" + std::string(all_) + "' is no form of a value"); }

  std::string_view all_;
  std::string_view rest_;
};

std::size_t optional_before(const ValueForm& form, std::size_t index) noexcept {
  return static_cast<std::size_t>(std::count_if(form.children.begin(), form.children.begin() + static_cast<std::ptrdiff_t>(index),
                                                [](const ValueForm& child) { return child.nullable; }));
}

std::size_t validity_bytes(const ValueForm& form) noexcept { return (optional_before(form, form.children.size()) + 7) / 8; }

}  // namespace

ValueForm parse_form(const std::string& text) { return Parser(text).whole(); }

SequenceView::SequenceView(ValueBytes bytes, const ValueForm& item) : bytes_(bytes), item_(&item), count_(number_at(bytes, 0)) {
  begin_ = kNumber + (item.nullable ? (count_ + 7) / 8 : 0);
  if (begin_ > bytes.size() || (bytes.size() - begin_) / item.width() < count_) throw ValueError("a list has fewer items than it says");
}

ValueBytes SequenceView::at(std::size_t i) const {
  const std::size_t width = item_->width();
  const std::size_t place = begin_ + i * width;
  if (!item_->is_variable()) return bytes_.subspan(place, width);
  const std::size_t data = begin_ + count_ * kNumber;
  const std::size_t start = i == 0 ? 0 : number_at(bytes_, place - kNumber);
  return part(bytes_, data + start, data + number_at(bytes_, place));
}

StructView::StructView(ValueBytes bytes, const ValueForm& form) : bytes_(bytes), form_(&form) {
  std::size_t least = validity_bytes(form);
  for (const ValueForm& child : form.children) least += child.width();
  if (bytes.size() < least) throw ValueError("a struct has fewer bytes than its fields need");
}

bool StructView::is_valid(std::size_t i) const noexcept {
  if (!form_->children[i].nullable) return true;
  const std::size_t bit = optional_before(*form_, i);
  return (static_cast<unsigned char>(bytes_[bit / 8]) >> (bit % 8) & 1U) != 0;
}

ValueBytes StructView::at(std::size_t i) const {
  std::size_t place = validity_bytes(*form_);
  std::size_t start = 0;
  for (std::size_t k = 0; k < i; ++k) {
    if (form_->children[k].is_variable()) start = number_at(bytes_, place);
    place += form_->children[k].width();
  }
  const ValueForm& child = form_->children[i];
  if (!child.is_variable()) return bytes_.subspan(place, child.width());
  std::size_t data = place;
  for (std::size_t k = i; k < form_->children.size(); ++k) data += form_->children[k].width();
  return part(bytes_, data + start, data + number_at(bytes_, place));
}

MapView map_view(ValueBytes bytes, const ValueForm& form) {
  const std::size_t keys = number_at(bytes, 0);
  const SequenceView of_keys(part(bytes, kNumber, kNumber + keys), form.children[0]);
  const SequenceView of_values(part(bytes, kNumber + keys, bytes.size()), form.children[1]);
  if (of_keys.size() != of_values.size()) throw ValueError("a map has more keys than values, or fewer");
  return {of_keys, of_values};
}

ValueWriter::ValueWriter(std::string& out, const ValueForm& item, std::size_t count) : out_(out), item_(&item) {
  validity_ = out.size() + kNumber;
  place_ = validity_ + (item.nullable ? (count + 7) / 8 : 0);
  data_ = place_ + count * item.width();
  const std::size_t begin = out.size();
  out.resize(data_);
  put_number(out, begin, count);
}

ValueWriter::ValueWriter(std::string& out, const ValueForm& form) : out_(out), struct_(&form), validity_(out.size()) {
  place_ = validity_ + validity_bytes(form);
  data_ = place_;
  for (const ValueForm& child : form.children) data_ += child.width();
  out.resize(data_);
}

void ValueWriter::present() {
  if (!form().nullable) return;
  out_[validity_ + bit_ / 8] = static_cast<char>(static_cast<unsigned char>(out_[validity_ + bit_ / 8]) | 1U << (bit_ % 8));
  ++bit_;
}

void ValueWriter::absent() {
  const ValueForm& one = form();
  if (one.nullable) ++bit_;
  if (one.is_variable()) {
    put_number(out_, place_, out_.size() - data_);
  }
  place_ += one.width();
  ++next_;
}

char* ValueWriter::fixed() {
  present();
  char* const at = out_.data() + place_;
  place_ += form().width();
  ++next_;
  return at;
}

void ValueWriter::begin() { present(); }

void ValueWriter::end() {
  put_number(out_, place_, out_.size() - data_);
  place_ += kNumber;
  ++next_;
}

void MapWriter::keys_written() { put_number(out_, begin_, out_.size() - begin_ - kNumber); }

}  // namespace rayelastic
