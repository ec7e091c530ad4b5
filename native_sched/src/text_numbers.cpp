// int() and float() of str and bytes as CPython has them: PyLong_FromUnicodeObject and PyFloat_FromString first turn white space
// and digits of other scripts into ASCII, then parse, underscores being allowed between digits.
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include <locale.h>

#include "rayelastic/text.h"
#include "text_classes.hpp"

namespace {

constexpr int64_t kMostDigits = 4300;  // sys.int_info.default_max_str_digits: above it CPython decides, not we

bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

// Py_ISSPACE, which is less than str.isspace(): U+001C to U+001F aren't stripped.
bool is_ascii_space(char byte) noexcept { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

bool is_ascii(std::string_view text) noexcept {
  unsigned char all = 0;
  for (const char byte : text) all |= static_cast<unsigned char>(byte);
  return all < 0x80;
}

std::string_view strip(std::string_view text) noexcept {
  while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_ascii_space(text.back())) text.remove_suffix(1);
  return text;
}

uint32_t decode(const char*& at) noexcept {  // of valid UTF-8, beyond ASCII
  const auto next = [&at] { return static_cast<uint32_t>(static_cast<unsigned char>(*at++)); };
  const uint32_t first = next();
  if (first < 0xe0) return (first & 0x1f) << 6 | (next() & 0x3f);
  uint32_t code_point = first < 0xf0 ? first & 0x0f : first & 0x07;
  for (int more = first < 0xf0 ? 2 : 3; more > 0; --more) code_point = code_point << 6 | (next() & 0x3f);
  return code_point;
}

// _PyUnicode_TransformDecimalAndSpaceToASCII
std::string to_ascii(std::string_view text) {
  std::string ascii;
  ascii.reserve(text.size());
  const char* limit = text.data() + text.size();
  for (const char* at = text.data(); at < limit;) {
    if (static_cast<unsigned char>(*at) < 0x80) {
      ascii.push_back(*at++);
      continue;
    }
    const bool space = rayelastic::text::space_length(at, limit) != 0;
    const int digit = rayelastic::text::digit_of(decode(at));
    ascii.push_back(space ? ' ' : (digit < 0 ? '?' : static_cast<char>('0' + digit)));
  }
  return ascii;
}

int32_t parse_int(std::string_view text, int64_t* value) noexcept {
  text = strip(text);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front()) || !is_digit(text.back())) return REL_TEXT_VALUE_ERROR;
  uint64_t magnitude = 0;
  bool overflow = false;
  int64_t digits = 0;
  char previous = '0';
  for (const char byte : text) {
    if (is_digit(byte)) {
      ++digits;
      overflow |= __builtin_mul_overflow(magnitude, uint64_t{10}, &magnitude);
      overflow |= __builtin_add_overflow(magnitude, static_cast<uint64_t>(byte - '0'), &magnitude);
    } else if (byte != '_' || previous == '_') {
      return REL_TEXT_VALUE_ERROR;
    }
    previous = byte;
  }
  const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (negative ? 1 : 0);
  if (overflow || magnitude > limit || digits > kMostDigits) return REL_TEXT_REFUSED;
  *value = static_cast<int64_t>(negative ? 0 - magnitude : magnitude);
  return REL_TEXT_OK;
}

bool equals_word(std::string_view text, std::string_view word) noexcept {
  if (text.size() != word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if ((text[i] | 0x20) != word[i]) return false;
  }
  return true;
}

// Beyond the range of double from_chars says no more than that; strtod tells which way.
double out_of_range(std::string_view text) {
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(std::string(text).c_str(), nullptr, c_locale);
}

int32_t parse_float(std::string_view text, double* value) {
  text = strip(text);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.empty()) return REL_TEXT_VALUE_ERROR;
  double magnitude = 0;
  if (is_digit(text.front()) || text.front() == '.') {
    std::string joined;
    if (text.find('_') != std::string_view::npos) {  // _Py_string_to_number_with_underscores
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '_') {
          joined.push_back(text[i]);
        } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
          return REL_TEXT_VALUE_ERROR;
        }
      }
      text = joined;
    }
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), magnitude, std::chars_format::general);
    if (end != text.data() + text.size() || problem == std::errc::invalid_argument) return REL_TEXT_VALUE_ERROR;
    if (problem == std::errc::result_out_of_range) magnitude = out_of_range(text);
  } else if (equals_word(text, "inf") || equals_word(text, "infinity")) {
    magnitude = std::numeric_limits<double>::infinity();
  } else if (equals_word(text, "nan")) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else {
    return REL_TEXT_VALUE_ERROR;
  }
  *value = negative ? -magnitude : magnitude;
  return REL_TEXT_OK;
}

template <typename Value, typename Parse>
int32_t parse(const rel_text& text, bool is_bytes, Value* value, Parse parse_ascii) noexcept {
  const std::string_view view(text.data, static_cast<std::size_t>(text.bytes));
  try {
    if (is_bytes || is_ascii(view)) return parse_ascii(view, value);
    return parse_ascii(to_ascii(view), value);
  } catch (...) {  // of std::string alone
    return REL_TEXT_NO_MEMORY;
  }
}

}  // namespace

extern "C" {

int32_t rel_text_to_int(const rel_text* text, int64_t is_bytes, int64_t* value) { return parse(*text, is_bytes != 0, value, parse_int); }

int32_t rel_text_to_float(const rel_text* text, int64_t is_bytes, double* value) { return parse(*text, is_bytes != 0, value, parse_float); }

}  // extern "C"
