// Parses JSON texts as far as requested, by recursive descent: it builds nothing but texts with escapes. It accepts exactly what json.loads
// accepts, up to a depth.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/text_service.hpp"

namespace rayelastic::json {

inline constexpr int kDeepest = 200;  // levels; the stack of a worker is finite, as CPython's is
inline constexpr std::string_view kNull = "null";

// Where reading is.
class Cursor {
 public:
  explicit Cursor(std::string_view text) noexcept : at_(text.data()), end_(text.data() + text.size()) {}

  [[nodiscard]] const char* at() const noexcept { return at_; }
  [[nodiscard]] bool is_done() const noexcept { return at_ == end_; }
  [[nodiscard]] char peek() const noexcept { return is_done() ? '\0' : *at_; }
  [[nodiscard]] bool take(char wanted) noexcept {
    if (is_done() || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] bool take(std::string_view wanted) noexcept {
    if (!std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  [[nodiscard]] std::string_view since(const char* begin) const noexcept { return {begin, static_cast<std::size_t>(at_ - begin)}; }
  void skip() noexcept { ++at_; }
  void skip_space() noexcept {
    while (!is_done() && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  // How many digits there were.
  std::size_t skip_digits() noexcept {
    const char* begin = at_;
    while (!is_done() && *at_ >= '0' && *at_ <= '9') ++at_;
    return static_cast<std::size_t>(at_ - begin);
  }

 private:
  const char* at_;
  const char* end_;
};

// What stands between the quotes of a text.
struct Quoted {
  std::string_view inner;
  bool has_escapes = false;
};

inline int hex_value(char byte) noexcept {
  if (byte >= '0' && byte <= '9') return byte - '0';
  const char small = static_cast<char>(byte | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// Four hexadecimal digits, or -1.
inline std::int32_t code_unit(std::string_view digits) noexcept {
  if (digits.size() < 4) return -1;
  std::int32_t unit = 0;
  for (const char digit : digits.substr(0, 4)) {
    const int value = hex_value(digit);
    if (value < 0) return -1;
    unit = unit << 4 | value;
  }
  return unit;
}

inline bool take_quoted(Cursor& text, Quoted& quoted) noexcept {
  if (!text.take('"')) return false;
  const char* begin = text.at();
  for (; !text.is_done(); text.skip()) {
    const char byte = text.peek();
    if (byte == '"') {
      quoted.inner = text.since(begin);
      text.skip();
      return true;
    }
    if (static_cast<unsigned char>(byte) < 0x20) return false;
    if (byte != '\\') continue;
    quoted.has_escapes = true;
    text.skip();
    if (std::string_view("\"\\/bfnrtu").find(text.peek()) == std::string_view::npos || text.is_done()) return false;
    if (text.peek() != 'u') continue;
    for (int digit = 0; digit < 4; ++digit) {
      text.skip();
      if (hex_value(text.peek()) < 0) return false;
    }
  }
  return false;
}

// The text that was quoted, which is no longer than what stands between the quotes; none if a surrogate is alone.
inline std::optional<std::string> decoded(std::string_view inner) {
  std::string made;
  made.reserve(inner.size());
  for (std::size_t at = 0; at < inner.size(); ++at) {
    if (inner[at] != '\\') {
      made.push_back(inner[at]);
      continue;
    }
    const char letter = inner[++at];
    if (letter != 'u') {
      const std::size_t which = std::string_view("bfnrt").find(letter);
      made.push_back(which == std::string_view::npos ? letter : "\b\f\n\r\t"[which]);
      continue;
    }
    auto point = static_cast<std::uint32_t>(code_unit(inner.substr(at + 1)));
    at += 4;
    if (point >= 0xdc00 && point < 0xe000) return std::nullopt;
    if (point >= 0xd800 && point < 0xdc00) {
      const bool follows = inner.substr(at + 1).starts_with("\\u");
      const std::int32_t low = follows ? code_unit(inner.substr(at + 3)) : -1;
      if (low < 0xdc00 || low >= 0xe000) return std::nullopt;
      point = 0x10000 + ((point - 0xd800) << 10) + (static_cast<std::uint32_t>(low) - 0xdc00);
      at += 6;
    }
    char utf8[4];
    made.append(utf8, static_cast<std::size_t>(text::encode(point, utf8) - utf8));
  }
  return made;
}

inline bool is_text(const Quoted& quoted, std::string_view text) {
  if (!quoted.has_escapes) return quoted.inner == text;
  const std::optional<std::string> made = decoded(quoted.inner);
  return made.has_value() && *made == text;
}

inline bool skip_number(Cursor& text) noexcept {
  if (text.take("NaN") || text.take("Infinity") || text.take("-Infinity")) return true;
  (void)text.take('-');
  if (!text.take('0') && text.skip_digits() == 0) return false;
  if (text.take('.') && text.skip_digits() == 0) return false;
  if (text.take('e') || text.take('E')) {
    if (!text.take('-')) (void)text.take('+');
    return text.skip_digits() != 0;
  }
  return true;
}

inline bool skip_value(Cursor& text, int levels);

// The parts of an object or a list, from behind its bracket on; each is given to `visit`.
template <typename Part>
bool each_part(Cursor& text, char end, Part&& part) {
  text.skip_space();
  if (text.take(end)) return true;
  for (;;) {
    text.skip_space();
    if (!part()) return false;
    text.skip_space();
    if (text.take(end)) return true;
    if (!text.take(',')) return false;
  }
}

template <typename Visit>
bool each_member(Cursor& text, int levels, Visit&& visit) {
  return each_part(text, '}', [&] {
    Quoted key;
    if (!take_quoted(text, key)) return false;
    text.skip_space();
    if (!text.take(':')) return false;
    text.skip_space();
    const char* begin = text.at();
    if (!skip_value(text, levels)) return false;
    visit(key, text.since(begin));
    return true;
  });
}

template <typename Visit>
bool each_element(Cursor& text, int levels, Visit&& visit) {
  return each_part(text, ']', [&] {
    const char* begin = text.at();
    if (!skip_value(text, levels)) return false;
    visit(text.since(begin));
    return true;
  });
}

inline bool skip_value(Cursor& text, int levels) {
  if (levels == 0) return false;
  switch (text.peek()) {
    case '{':
      text.skip();
      return each_member(text, levels - 1, [](const Quoted&, std::string_view) {});
    case '[':
      text.skip();
      return each_element(text, levels - 1, [](std::string_view) {});
    case '"': {
      Quoted ignored;
      return take_quoted(text, ignored);
    }
    case 't':
      return text.take("true");
    case 'f':
      return text.take("false");
    case 'n':
      return text.take(kNull);
    default:
      return skip_number(text);
  }
}

enum class Kind { None, Null, Bool, Number, Text, List, Object };  // None: it isn't JSON

// A whole text, taken apart as far as is asked.
struct Value {
  Kind kind = Kind::None;
  std::string_view literal;  // of a number, true or false
  Quoted quoted;             // of a text
};

inline constexpr auto kNoMember = [](const Quoted&, std::string_view) {};
inline constexpr auto kNoElement = [](std::string_view) {};

template <typename Member, typename Element>
Value read(const rel_text* json, Member&& member, Element&& element) {
  Cursor text(text::seen(json));
  text.skip_space();
  Value value;
  const char* begin = text.at();
  bool is_whole = false;
  switch (text.peek()) {
    case '{':
      text.skip();
      value.kind = Kind::Object;
      is_whole = each_member(text, kDeepest - 1, member);
      break;
    case '[':
      text.skip();
      value.kind = Kind::List;
      is_whole = each_element(text, kDeepest - 1, element);
      break;
    case '"':
      value.kind = Kind::Text;
      is_whole = take_quoted(text, value.quoted);
      break;
    default:
      value.kind = text.peek() == 'n' ? Kind::Null : text.peek() == 't' || text.peek() == 'f' ? Kind::Bool : Kind::Number;
      is_whole = skip_value(text, kDeepest);
  }
  value.literal = text.since(begin);
  text.skip_space();
  if (!is_whole || !text.is_done()) value.kind = Kind::None;
  return value;
}

inline Value read(const rel_text* json) { return read(json, kNoMember, kNoElement); }

}  // namespace rayelastic::json
