// span.h: halves go to the even number, and what has no 64 bits has no result.
#include "rayelastic/text/span.h"

#include <limits>

#include "check.hpp"

namespace {

constexpr std::int64_t kNone = -77;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::int64_t times(std::int64_t span, double factor) {
  std::int64_t result = 0;
  return rel_span_times(span, factor, &result) == 1 ? result : kNone;
}

std::int64_t over(std::int64_t span, double divisor) {
  std::int64_t result = 0;
  return rel_span_over(span, divisor, &result) == 1 ? result : kNone;
}

std::int64_t shared(std::int64_t span, std::int64_t divisor) {
  std::int64_t result = 0;
  return rel_span_shared(span, divisor, &result) == 1 ? result : kNone;
}

TEST(halves_go_to_the_even_number) {
  CHECK_EQ(times(1, 1.5), 2);
  CHECK_EQ(times(-1, 1.5), -2);
  CHECK_EQ(times(1, 0.5), 0);
  CHECK_EQ(times(3, 0.5), 2);
  CHECK_EQ(over(5, 2.0), 2);
  CHECK_EQ(over(-7, 2.0), -4);
  CHECK_EQ(shared(3, 2), 2);
  CHECK_EQ(shared(-3, 2), -2);
  CHECK_EQ(shared(5, -2), -2);
  CHECK_EQ(shared(7, 3), 2);
}

TEST(a_float_counts_as_the_fraction_that_it_is) {
  CHECK_EQ(times(1'000'000'000'000'000'001, 0.1), 100'000'000'000'000'006);
  CHECK_EQ(times(1, 5e-324), 0);
  CHECK_EQ(times(1'000'001, 1e-3), 1000);
  CHECK_EQ(over(1'000'000, 1e-3), 1'000'000'000);
  CHECK_EQ(over(1, 1e300), 0);
  CHECK_EQ(over(0, 5e-324), 0);
}

TEST(what_has_no_result) {
  CHECK_EQ(times(1, kInfinity), kNone);
  CHECK_EQ(times(1, std::numeric_limits<double>::quiet_NaN()), kNone);
  CHECK_EQ(times(std::numeric_limits<std::int64_t>::max(), 2.0), kNone);
  CHECK_EQ(times(1, 1e300), kNone);
  CHECK_EQ(over(1, 0.0), kNone);
  CHECK_EQ(over(1, 5e-324), kNone);
  CHECK_EQ(shared(1, 0), kNone);
  CHECK_EQ(shared(std::numeric_limits<std::int64_t>::min(), -1), kNone);
}

}  // namespace

REL_TEST_MAIN
