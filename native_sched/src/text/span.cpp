// span.h in 128-bit integers: multiply_by_float, divide_by_float and divide_nearest of CPython's datetime module.
#include "rayelastic/text/span.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

__extension__ using Wide = __int128;

constexpr int kMantissaBits = 53;
constexpr int kWideBits = 126;  // a number of so many bits can be doubled and negated

struct Fraction {
  std::int64_t mantissa;
  int exponent;
};

Fraction parts(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(fraction, kMantissaBits)), exponent - kMantissaBits};
}

int bits(Wide value) {
  int count = 0;
  for (Wide rest = value < 0 ? -value : value; rest != 0; rest >>= 1) ++count;
  return count;
}

std::int64_t nearest(Wide dividend, Wide divisor, std::int64_t* result) {
  if (divisor == 0) return 0;
  if (divisor < 0) {
    dividend = -dividend;
    divisor = -divisor;
  }
  Wide quotient = dividend / divisor;
  Wide rest = dividend % divisor;
  if (rest < 0) {
    rest += divisor;
    --quotient;
  }
  if (rest > divisor - rest || (rest == divisor - rest && quotient % 2 != 0)) ++quotient;
  if (quotient < std::numeric_limits<std::int64_t>::min() || quotient > std::numeric_limits<std::int64_t>::max()) return 0;
  *result = static_cast<std::int64_t>(quotient);
  return 1;
}

}  // namespace

std::int64_t rel_span_times(std::int64_t span, double factor, std::int64_t* result) {
  if (!std::isfinite(factor)) return 0;
  const auto [mantissa, exponent] = parts(factor);
  const Wide product = Wide{span} * mantissa;
  if (exponent >= 0) {
    if (bits(product) + exponent > kWideBits) return 0;
    return nearest(product << exponent, 1, result);
  }
  if (-exponent > kWideBits) return nearest(0, 1, result);  // below a half: the product has 117 bits at most
  return nearest(product, Wide{1} << -exponent, result);
}

std::int64_t rel_span_over(std::int64_t span, double divisor, std::int64_t* result) {
  if (!std::isfinite(divisor) || divisor == 0) return 0;
  const auto [mantissa, exponent] = parts(divisor);
  if (exponent <= 0) {
    if (bits(span) - exponent > kWideBits) return span == 0 ? nearest(0, 1, result) : 0;
    return nearest(Wide{span} << -exponent, mantissa, result);
  }
  if (bits(mantissa) + exponent > kWideBits) return nearest(0, 1, result);
  return nearest(span, Wide{mantissa} << exponent, result);
}

std::int64_t rel_span_shared(std::int64_t span, std::int64_t divisor, std::int64_t* result) { return nearest(span, divisor, result); }
