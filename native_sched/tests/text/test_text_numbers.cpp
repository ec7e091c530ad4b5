// int() and float() of texts: what CPython's own answer.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "check.hpp"
#include "rayelastic/text/text.h"

namespace {

struct Read {
  std::int32_t status;
  std::int64_t value;
  bool operator==(const Read&) const = default;
};

Read int_of(std::string_view text, bool is_bytes = false, std::int64_t base = 10) {
  const rel_text given{text.data(), static_cast<std::int64_t>(text.size())};
  std::int64_t value = 0;
  const std::int32_t status = rel_text_to_int(&given, base, is_bytes ? 1 : 0, &value);
  return {status, value};
}

double float_of(std::string_view text, bool is_bytes = false) {
  const rel_text given{text.data(), static_cast<std::int64_t>(text.size())};
  double value = 0;
  return rel_text_to_float(&given, is_bytes ? 1 : 0, &value) == REL_TEXT_OK ? value : std::numeric_limits<double>::quiet_NaN();
}

constexpr Read kInvalid{REL_TEXT_VALUE_ERROR, 0};
constexpr Read kRefused{REL_TEXT_REFUSED, 0};

}  // namespace

TEST(ints_are_read_as_cpython_reads_them) {
  CHECK(int_of(" -1_0\n") == (Read{REL_TEXT_OK, -10}));
  CHECK(int_of("\u0661\uff15") == (Read{REL_TEXT_OK, 15}));  // an Arabic and a fullwidth digit
  CHECK(int_of("\U00011f51") == kRefused);                   // a Kawi one, since Unicode 15: Python decides
  CHECK(int_of("\u20ac1") == kInvalid);
  CHECK(int_of("\U0001f642") == kInvalid);
  CHECK(int_of("\u20037\u00a0") == (Read{REL_TEXT_OK, 7}));
  CHECK(int_of("") == kInvalid && int_of("-") == kInvalid && int_of("1__0") == kInvalid && int_of("_1") == kInvalid &&
        int_of("1_") == kInvalid);
  CHECK(int_of("9223372036854775807") == (Read{REL_TEXT_OK, std::numeric_limits<std::int64_t>::max()}));
  CHECK(int_of("-9223372036854775808") == (Read{REL_TEXT_OK, std::numeric_limits<std::int64_t>::min()}));
  CHECK(int_of("9223372036854775808") == kRefused && int_of("-9223372036854775809") == kRefused);
}

// str.strip() takes these away, int() and float() don't.
TEST(separators_are_no_white_space_around_a_number) {
  for (const char separator : {'\x1c', '\x1d', '\x1e', '\x1f'}) {
    const char text[] = {separator, '-', '0'};
    CHECK(int_of({text, 3}) == kInvalid);
    CHECK(std::isnan(float_of({text, 3})));
  }
}

TEST(bytes_have_ascii_alone) {
  CHECK(int_of("\v7\f", true) == (Read{REL_TEXT_OK, 7}));
  CHECK(int_of("\u0661", true) == kInvalid && int_of("\u20037", true) == kInvalid);
  CHECK_EQ(float_of(" 1.5 ", true), 1.5);
}

TEST(floats_are_read_as_cpython_reads_them) {
  CHECK_EQ(float_of("1_0.5_0e1_0"), 10.5e10);
  CHECK_EQ(float_of("-InFiNiTy"), -std::numeric_limits<double>::infinity());
  CHECK_EQ(float_of("1e400"), std::numeric_limits<double>::infinity());
  CHECK_EQ(float_of("9007199254740993"), 9007199254740992.0);
  CHECK(std::signbit(float_of("-1e-400")));
  for (const char* bad : {"", ".", "1e", "1__0", "0x1p3", "nan(1)", "1 2"}) CHECK(std::isnan(float_of(bad)));
}

REL_TEST_MAIN
