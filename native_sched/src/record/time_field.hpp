// The event time in a record: an integer or timestamp field in ticks as it stands, or a float field of seconds, whose ticks are
// microseconds: the most that, written as seconds, are no more, so that what is written is read again. Clamped to +-2^62, so that adding a window's length doesn't overflow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "rayelastic/record/hash.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

inline constexpr std::int64_t kLatestTime = std::int64_t{1} << 62;
inline constexpr std::int64_t kLongestSpan = std::int64_t{1} << 60;  // of windows, gaps, lateness

// Of times that were read from somewhere: outside of these, what is computed with them might overflow.
inline constexpr std::int64_t kFirstTime = -kLatestTime - kLongestSpan;
inline constexpr std::int64_t kLastTime = kLatestTime + kLongestSpan;

class TimeField {
 public:
  // Times are shifted by `shift` ticks. Throws std::invalid_argument if the schema has no such field, or it holds no times.
  TimeField(const Schema& schema, const std::string& name, std::int64_t shift = 0) : shift_(shift) {
    const Field* field = schema.find(name);
    if (field == nullptr) throw std::invalid_argument("there is no field '" + name + "' to take the time from");
    const bool whole = field->type >= Type::Int8 && field->type <= Type::UInt64;
    if (!whole && field->type != Type::Timestamp && !is_float(field->type))
      throw std::invalid_argument("field '" + name + "' holds no times: it has to be a timestamp, an integer or a float");
    if (field->nullable) throw std::invalid_argument("field '" + name + "' may be null and can't be the event time");
    type_ = field->type;
    offset_ = field->offset;
  }

  [[nodiscard]] std::int64_t of(const std::byte* record) const noexcept {
    return visit_number(type_, record + offset_, [this](auto value) -> std::int64_t {
      using Value = decltype(value);
      if constexpr (std::is_integral_v<Value>) {
        const auto ticks = static_cast<std::int64_t>(std::min<std::uint64_t>(value, kLatestTime));
        if constexpr (std::is_signed_v<Value>) return std::clamp<std::int64_t>(value, -kLatestTime, kLatestTime) + shift_;
        return ticks + shift_;
      } else {
        double ticks = std::floor(static_cast<double>(value) * kTicksOfFloats);
        if (std::isnan(ticks)) return -kLatestTime;
        if ((ticks + 1) / kTicksOfFloats <= static_cast<double>(value)) {
          ticks += 1;
        } else if (ticks / kTicksOfFloats > static_cast<double>(value)) {
          ticks -= 1;
        }
        return static_cast<std::int64_t>(std::clamp(ticks, -static_cast<double>(kLatestTime), static_cast<double>(kLatestTime))) + shift_;
      }
    });
  }

  // Of what it takes from a record.
  [[nodiscard]] std::uint64_t form() const noexcept {
    return hash_of(hash_of(static_cast<std::uint64_t>(shift_)) ^ (offset_ * 256 + static_cast<std::uint64_t>(type_)));
  }

  // Writes a time to a field of the same type in another record.
  static void write(Type type, std::int64_t ticks, std::byte* place) noexcept {
    switch (type) {
      case Type::Float64:
        return store(place, static_cast<double>(ticks) / kTicksOfFloats);
      case Type::Float32:
        return store(place, static_cast<float>(static_cast<double>(ticks) / kTicksOfFloats));
      default:
        std::memcpy(place, &ticks, size_of(type));
    }
  }

 private:
  static constexpr double kTicksOfFloats = 1e6;  // microseconds of seconds

  Type type_ = Type::Int64;
  std::size_t offset_ = 0;
  std::int64_t shift_ = 0;
};

}  // namespace rayelastic
