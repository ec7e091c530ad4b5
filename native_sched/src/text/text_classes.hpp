// Which code points are white space for str.split() and which are decimal digits for int(), read from UTF-8 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace rayelastic::text {

// The bytes of the white space code point at `at`, 0 if there is none. Py_UNICODE_ISSPACE: U+0009-000D, 001C-0020, 0085, 00A0,
// 1680, 2000-200A, 2028, 2029, 202F, 205F, 3000.
[[nodiscard]] inline int space_length(const char* at, const char* limit) noexcept {
  const auto first = static_cast<unsigned char>(at[0]);
  if (first < 0x80) return first == 0x20 || (first >= 0x09 && first <= 0x0d) || (first >= 0x1c && first <= 0x1f) ? 1 : 0;
  if (limit - at < 2) return 0;
  const auto second = static_cast<unsigned char>(at[1]);
  if (first == 0xc2) return second == 0x85 || second == 0xa0 ? 2 : 0;
  if (limit - at < 3) return 0;
  const auto third = static_cast<unsigned char>(at[2]);
  if (first == 0xe1) return second == 0x9a && third == 0x80 ? 3 : 0;
  if (first == 0xe2 && second == 0x80) return third <= 0x8a || third == 0xa8 || third == 0xa9 || third == 0xaf ? 3 : 0;
  if (first == 0xe2) return second == 0x81 && third == 0x9f ? 3 : 0;
  return first == 0xe3 && second == 0x80 && third == 0x80 ? 3 : 0;
}

// Zeros of the decimal digits (category Nd) beyond ASCII, from CPython 3.11's unicodedata (Unicode 14); nine more follow each.
inline constexpr std::array<std::uint32_t, 65> kZeros = {
    0x660,   0x6f0,   0x7c0,   0x966,   0x9e6,   0xa66,   0xae6,   0xb66,   0xbe6,   0xc66,   0xce6,   0xd66,   0xde6,
    0xe50,   0xed0,   0xf20,   0x1040,  0x1090,  0x17e0,  0x1810,  0x1946,  0x19d0,  0x1a80,  0x1a90,  0x1b50,  0x1bb0,
    0x1c40,  0x1c50,  0xa620,  0xa8d0,  0xa900,  0xa9d0,  0xa9f0,  0xaa50,  0xabf0,  0xff10,  0x104a0, 0x10d30, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50,
    0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0};

// The same of Unicode 15 to 17: digits to a Python that knows them, and none to 3.11.
inline constexpr std::array<std::uint32_t, 9> kLaterZeros = {0x10d40, 0x116d0, 0x116da, 0x11bf0, 0x11de0,
                                                             0x11f50, 0x1ccf0, 0x1e4f0, 0x1e5f1};

// The digit that a code point beyond ASCII stands for, -1 if none.
[[nodiscard]] inline int digit_of(std::uint32_t code_point) noexcept {
  const auto after = std::ranges::upper_bound(kZeros, code_point);
  if (after == kZeros.begin()) return -1;
  const std::uint32_t digit = code_point - *(after - 1);
  return digit < 10 ? static_cast<int>(digit) : -1;
}

// Whether that depends on which Unicode is asked.
[[nodiscard]] inline bool may_be_digit(std::uint32_t code_point) noexcept {
  return std::ranges::any_of(kLaterZeros, [=](std::uint32_t zero) { return code_point - zero < 10; });
}

}  // namespace rayelastic::text
