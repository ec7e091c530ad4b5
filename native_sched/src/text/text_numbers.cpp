// int() and float() of str and bytes as CPython has them, and texts of ints. PyLong_FromUnicodeObject and PyFloat_FromString first turn white space
// and digits of other scripts into ASCII, then parse, underscores being allowed between digits.
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include <locale.h>

#include "text/text_classes.hpp"
#include "text/text_service.hpp"

using namespace rayelastic::text;

namespace {

constexpr int64_t kMostDigits = 4300;  // sys.int_info.default_max_str_digits: above it CPython decides, not we

bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

// Py_ISSPACE, which is less than str.isspace(): U+001C to U+001F aren't stripped.
bool is_ascii_space(char byte) noexcept { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

std::string_view strip(std::string_view text) noexcept {
  while (!text.empty() && is_ascii_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_ascii_space(text.back())) text.remove_suffix(1);
  return text;
}

// _PyUnicode_TransformDecimalAndSpaceToASCII. unsure: set where there is what is a digit to newer Pythons alone.
std::string to_ascii(std::string_view text, bool& unsure) {
  std::string ascii;
  ascii.reserve(text.size());
  const char* limit = text.data() + text.size();
  for (const char* at = text.data(); at < limit;) {
    if (static_cast<unsigned char>(*at) < 0x80) {
      ascii.push_back(*at++);
      continue;
    }
    const bool space = space_length(at, limit) != 0;
    const std::uint32_t code_point = decode(at);
    const int digit = digit_of(code_point);
    unsure |= may_be_digit(code_point);
    ascii.push_back(space ? ' ' : (digit < 0 ? '?' : static_cast<char>('0' + digit)));
  }
  return ascii;
}

// The value of a digit in any base up to 36, or 36.
int digit_value(char byte) noexcept {
  if (is_digit(byte)) return byte - '0';
  const char small = static_cast<char>(byte | 0x20);
  return small >= 'a' && small <= 'z' ? small - 'a' + 10 : 36;
}

int base_of_prefix(char letter) noexcept {
  switch (letter | 0x20) {
    case 'x':
      return 16;
    case 'o':
      return 8;
    case 'b':
      return 2;
    default:
      return 0;
  }
}

// PyLong_FromString: the prefix goes, and the base that it says is known, or the text is no number.
int32_t take_prefix(std::string_view& text, int64_t& base) noexcept {
  const int said = text.size() > 1 && text[0] == '0' ? base_of_prefix(text[1]) : 0;
  const bool by_itself = base == 0;
  if (by_itself) base = said == 0 ? 10 : said;
  if (said != 0 && said == base) {
    text.remove_prefix(2);
    if (!text.empty() && text.front() == '_') text.remove_prefix(1);
    return REL_TEXT_OK;
  }
  if (!by_itself || text.empty() || text.front() != '0') return REL_TEXT_OK;
  return text.find_first_not_of("0_") == std::string_view::npos ? REL_TEXT_OK : REL_TEXT_VALUE_ERROR;  // 010 is no int literal
}

int32_t parse_int(std::string_view text, int64_t base, int64_t* value) noexcept {
  text = strip(text);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (take_prefix(text, base) != REL_TEXT_OK) return REL_TEXT_VALUE_ERROR;
  uint64_t magnitude = 0;
  bool overflow = false;
  int64_t digits = 0;
  char previous = '_';
  for (const char byte : text) {
    if (const int digit = digit_value(byte); digit < base) {
      ++digits;
      overflow |= __builtin_mul_overflow(magnitude, static_cast<uint64_t>(base), &magnitude);
      overflow |= __builtin_add_overflow(magnitude, static_cast<uint64_t>(digit), &magnitude);
    } else if (byte != '_' || previous == '_') {
      return REL_TEXT_VALUE_ERROR;
    }
    previous = byte;
  }
  if (previous == '_') return REL_TEXT_VALUE_ERROR;
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

template <typename Parse>
int32_t parse(const rel_text* text, int64_t is_bytes, Parse&& parse_ascii) noexcept {
  try {
    if (is_bytes != 0 || is_ascii(seen(text))) return parse_ascii(seen(text));
    bool unsure = false;
    const int32_t status = parse_ascii(std::string_view(to_ascii(seen(text), unsure)));
    return unsure ? REL_TEXT_REFUSED : status;
  } catch (...) {  // of std::string alone
    return REL_TEXT_NO_MEMORY;
  }
}

}  // namespace

extern "C" {

int32_t rel_text_to_int(const rel_text* text, int64_t base, int64_t is_bytes, int64_t* value) {
  if (base != 0 && (base < 2 || base > 36)) return REL_TEXT_VALUE_ERROR;
  return parse(text, is_bytes, [&](std::string_view ascii) { return parse_int(ascii, base, value); });
}

int32_t rel_text_to_float(const rel_text* text, int64_t is_bytes, double* value) {
  return parse(text, is_bytes, [value](std::string_view ascii) { return parse_float(ascii, value); });
}

int32_t rel_text_of_int(const rel_text_room* room, int64_t value, int64_t base, rel_text* made) {
  char digits[64];
  const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const auto end = std::to_chars(digits, digits + sizeof digits, magnitude, static_cast<int>(base)).ptr;
  char* const out = memory(room, end - digits + 3);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  char* to = put(value < 0 ? "-0" : "0", out);
  *to++ = base == 16 ? 'x' : base == 8 ? 'o' : 'b';
  to = put({digits, static_cast<std::size_t>(end - digits)}, to);
  *made = {out, to - out};
  return REL_TEXT_OK;
}

int32_t rel_text_of_point(const rel_text_room* room, int64_t point, rel_text* made) {
  if (point != static_cast<int32_t>(point)) return REL_TEXT_OVERFLOW_ERROR;
  if (point < 0 || point > 0x10ffff) return REL_TEXT_VALUE_ERROR;
  if (point >= 0xd800 && point < 0xe000) return REL_TEXT_REFUSED;
  char* const out = memory(room, 4);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  *made = {out, encode(static_cast<uint32_t>(point), out) - out};
  return REL_TEXT_OK;
}

int32_t rel_text_bytes_to_int(const rel_text* text, int64_t is_signed, int64_t is_little, int64_t* value) {
  const auto byte = [&](int64_t place) {  // place 0 is the lowest
    return static_cast<unsigned char>(text->data[is_little != 0 ? place : text->bytes - 1 - place]);
  };
  const bool negative = is_signed != 0 && text->bytes > 0 && byte(text->bytes - 1) >= 0x80;
  uint64_t bits = negative ? ~uint64_t{0} : 0;
  for (int64_t place = 0; place < text->bytes; ++place) {
    if (place < 8) {
      bits = (bits & ~(uint64_t{0xff} << 8 * place)) | uint64_t{byte(place)} << 8 * place;
    } else if (byte(place) != (negative ? 0xff : 0)) {
      return REL_TEXT_REFUSED;
    }
  }
  *value = static_cast<int64_t>(bits);
  return (*value < 0) == negative ? REL_TEXT_OK : REL_TEXT_REFUSED;
}

}  // extern "C"
