// The numbers in record fields: as they are stored, as doubles, and as unsigned integers of the same order. Knows only types.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "rayelastic/record/schema.hpp"

namespace rayelastic {

[[nodiscard]] inline bool is_text(Type type) noexcept { return type == Type::String || type == Type::Binary; }

[[nodiscard]] inline bool is_float(Type type) noexcept { return type == Type::Float16 || type == Type::Float32 || type == Type::Float64; }

template <typename Value>
[[nodiscard]] Value load(const std::byte* place) noexcept {
  Value value;
  std::memcpy(static_cast<void*>(&value), place, sizeof value);
  return value;
}

template <typename Value>
void store(std::byte* place, const Value& value) noexcept {
  std::memcpy(place, &value, sizeof value);
}

// IEEE 754 binary16, which C++20 has no type for.
struct Half {
  std::uint16_t bits;
  explicit operator double() const noexcept {
    const int exponent = bits >> 10 & 0x1f;
    const double fraction = bits & 0x3ff;
    double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
    if (exponent == 0x1f) value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    return (bits & 0x8000) != 0 ? -value : value;
  }
};

// Calls visit(value) with the value of a field that is no text, in the type that it has.
__extension__ using WholeNumber128 = __int128;

// As a decimal128 of some scale lies in a record.
struct Decimal {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  Decimal() noexcept = default;
  explicit Decimal(WholeNumber128 number) noexcept
      : low(static_cast<std::uint64_t>(number)), high(static_cast<std::uint64_t>(number >> 64)) {}
  [[nodiscard]] WholeNumber128 number() const noexcept {
    __extension__ using Bits = unsigned __int128;
    return static_cast<WholeNumber128>(static_cast<Bits>(high) << 64 | low);
  }
  friend bool operator<(const Decimal& a, const Decimal& b) noexcept { return a.number() < b.number(); }
  friend bool operator>(const Decimal& a, const Decimal& b) noexcept { return b < a; }
};

struct Uuid {
  unsigned char bytes[16] = {};
  friend bool operator<(const Uuid& a, const Uuid& b) noexcept { return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) < 0; }
  friend bool operator>(const Uuid& a, const Uuid& b) noexcept { return b < a; }
};

template <typename Visit>
decltype(auto) visit_number(Type type, const std::byte* place, Visit&& visit) {
  switch (type) {
    case Type::Bool:
    case Type::UInt8:
      return visit(load<std::uint8_t>(place));
    case Type::Int8:
      return visit(load<std::int8_t>(place));
    case Type::Int16:
      return visit(load<std::int16_t>(place));
    case Type::UInt16:
      return visit(load<std::uint16_t>(place));
    case Type::Int32:
    case Type::Date32:
    case Type::Time32:
      return visit(load<std::int32_t>(place));
    case Type::UInt32:
      return visit(load<std::uint32_t>(place));
    case Type::UInt64:
      return visit(load<std::uint64_t>(place));
    case Type::Float16:
      return visit(load<Half>(place));
    case Type::Float32:
      return visit(load<float>(place));
    case Type::Float64:
      return visit(load<double>(place));
    default:
      return visit(load<std::int64_t>(place));
  }
}

[[nodiscard]] inline double number_at(Type type, const std::byte* place) noexcept {
  return visit_number(type, place, [](auto value) { return static_cast<double>(value); });
}

// A field that is no text as an unsigned integer: the order of the integers is that of the values (a NaN is beyond the infinities).
[[nodiscard]] inline std::uint64_t ordered_bits(Type type, const std::byte* place) noexcept {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  if (is_float(type)) {
    const std::size_t size = size_of(type);
    std::uint64_t bits = 0;
    std::memcpy(&bits, place, size);
    bits <<= 64 - 8 * size;
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  return visit_number(type, place, [](auto value) -> std::uint64_t {
    using Value = decltype(value);
    if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value>) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) ^ kSign;
    } else if constexpr (std::is_integral_v<Value>) {
      return value;
    } else {
      return 0;  // floats came above
    }
  });
}

// The inverse of ordered_bits.
inline void restore_ordered(Type type, std::uint64_t ordered, std::byte* place) noexcept {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const std::size_t size = size_of(type);
  if (is_float(type)) {
    const std::uint64_t bits = ((ordered & kSign) != 0 ? ordered ^ kSign : ~ordered) >> (64 - 8 * size);
    std::memcpy(place, &bits, size);
    return;
  }
  const bool is_unsigned = type == Type::Bool || (type >= Type::UInt8 && type <= Type::UInt64);
  const std::uint64_t bits = is_unsigned ? ordered : ordered ^ kSign;
  std::memcpy(place, &bits, size);
}

}  // namespace rayelastic
