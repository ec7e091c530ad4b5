// number_text.h over std::to_chars, which is exact: CPython's float_repr_style "short", Python/pystrtod.c.
#include "rayelastic/text/number_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

constexpr int kFixedFrom = -4;  // decimal exponents that repr writes without an exponent
constexpr int kFixedBelow = 16;
constexpr std::int64_t kExactDigits = 323;  // round() to more leaves every double as it is: float_round in CPython's floatobject.c
constexpr int kAllDigits = 766;             // of any double, behind the first

std::int64_t put(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return static_cast<std::int64_t>(text.size());
}

std::int64_t repr(double value, char* out) {
  std::array<char, 64> shortest{};
  const auto end = std::to_chars(shortest.data(), shortest.data() + shortest.size(), value, std::chars_format::scientific).ptr;
  const std::string_view text{shortest.data(), static_cast<std::size_t>(end - shortest.data())};
  const int exponent = std::atoi(text.data() + text.find('e') + 1);
  if (exponent < kFixedFrom || exponent >= kFixedBelow) return put(out, text);
  char* const stop = std::to_chars(out, out + REL_FLOAT_TEXT_BYTES, value, std::chars_format::fixed).ptr;
  const std::string_view fixed{out, static_cast<std::size_t>(stop - out)};
  return static_cast<std::int64_t>(fixed.size()) + (fixed.find('.') == std::string_view::npos ? put(stop, ".0") : 0);
}

}  // namespace

std::int64_t rel_text_of_float(double value, std::int32_t kind, std::int64_t precision, char* out) {
  if (std::isnan(value)) return put(out, "nan");
  if (std::isinf(value)) return put(out, value < 0 ? "-inf" : "inf");
  if (kind == 'r') return repr(value, out);
  const auto format = kind == 'f' ? std::chars_format::fixed : kind == 'e' ? std::chars_format::scientific : std::chars_format::general;
  const int digits = static_cast<int>(std::clamp<std::int64_t>(precision, 0, REL_FLOAT_PRECISION));
  return std::to_chars(out, out + REL_FLOAT_TEXT_BYTES, value, format, digits).ptr - out;
}

double rel_rounded(double value, std::int64_t digits) {
  if (!std::isfinite(value) || value == 0 || digits > kExactDigits) return value;
  std::array<char, 1200> text{};  // 309 digits or kExactDigits before and after the point, or all of a double in scientific form
  char* const begin = text.data();
  char* const room = begin + text.size();
  char* end = nullptr;
  if (digits >= 0) {
    end = std::to_chars(begin, room, value, std::chars_format::fixed, static_cast<int>(digits)).ptr;
  } else {
    end = std::to_chars(begin, room, value, std::chars_format::scientific, kAllDigits).ptr;
    const std::int64_t exponent = std::atoi(std::string_view{begin, end}.substr(std::string_view{begin, end}.find('e') + 1).data());
    if (exponent + digits >= 0) {
      end = std::to_chars(begin, room, value, std::chars_format::scientific, static_cast<int>(exponent + digits)).ptr;
    } else {  // 0 or one unit: whether it is more than half of it
      const bool is_one = exponent + digits == -1 && std::abs(value) > 5 * std::pow(10.0, static_cast<double>(exponent));
      end = begin + std::snprintf(begin, text.size(), "%s%de%lld", value < 0 ? "-" : "", is_one ? 1 : 0, static_cast<long long>(-digits));
    }
  }
  double rounded = value;
  std::from_chars(begin, end, rounded);
  return rounded;
}
