// The time to live of a keyed state: the current time, and the dropped keys. It knows only the time field of records, and not who
// runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "record/time_field.hpp"

namespace rayelastic {

struct KeyedState::Lives {
  Lives(const Schema& input, const TimeToLive& ttl);

  void times_of(const std::byte* records, std::size_t count, std::size_t stride, std::int64_t* times) const noexcept;

  // A state with touches isn't one without, nor are touches by event time such by the clock.
  [[nodiscard]] std::uint64_t layout(std::uint64_t digest) const noexcept {
    constexpr std::uint64_t kTouched = 0x64656863756f74;  // "touched"
    return hash_of(hash_of(digest ^ kTouched) ^ (time.has_value() ? 1 : 0));
  }

  std::int64_t ttl;  // ticks
  Touch touch;
  std::optional<TimeField> time = {};         // else by the clock
  std::function<std::int64_t()> clock;        // empty with an event time
  std::int64_t now = kNoWatermark;            // the watermark, or what the clock said when the run began
  std::vector<std::uint32_t> forgotten = {};  // slots that the run that goes on may still use
  std::size_t next = 0;                       // slot to be swept
  std::size_t sweeps = 0;                     // slots to be looked at before this run
  Slot* looked_up = nullptr;                  // with Touch::Change: the last one, at its record's time, and what its state was
  std::int64_t looked_up_at = 0;
  std::vector<std::byte> before = {};
};

}  // namespace rayelastic
