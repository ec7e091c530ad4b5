// The time to live of a join's keys: by the times of its records, or by the clock. Knows no records.
//
// A life of a key begins with a record that is kept. It is over for a record, or at a time, that is more than the time to live after the
// latest record of the key, or after its first one.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "record/time_field.hpp"

namespace rayelastic {

struct KeyLife {
  std::int64_t touched = kNoWatermark;  // it hasn't begun

  [[nodiscard]] bool has_begun() const noexcept { return touched != kNoWatermark; }
};

struct JoinLives {
  std::int64_t ttl;  // ticks, 0 for none; nanoseconds by the clock
  bool since_first;
  std::function<std::int64_t()> clock = {};  // empty by event time
  std::int64_t now = 0;                      // what the clock said when the run began

  explicit JoinLives(const TimeToLive& given) : ttl(given.ticks), since_first(given.touch == Touch::First) {
    if (ttl == 0 || !given.field.empty()) return;
    clock = given.clock ? given.clock : [] {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
    now = clock();
  }

  [[nodiscard]] bool any() const noexcept { return ttl != 0; }
  // Times are within +-2^62 and a shift, times to live at most 2^60; a watermark may be none.
  [[nodiscard]] bool is_over(const KeyLife& life, std::int64_t at) const noexcept {
    return life.has_begun() && life.touched < std::max(at, -kLatestTime) - ttl;
  }
  // When a life that was touched then is over, if nothing else touches it.
  [[nodiscard]] std::int64_t end_of(std::int64_t touched) const noexcept { return touched + ttl + 1; }
  void touch(KeyLife& life, std::int64_t at) const noexcept {
    if (!life.has_begun() || is_over(life, at) || (!since_first && at > life.touched)) life.touched = at;
  }

  // --- in exported state: when it was touched (8); by the clock how long ago, for that stands still meanwhile
  [[nodiscard]] std::uint64_t form(std::uint64_t digest) const noexcept {
    constexpr std::uint64_t kTouched = 0x64656863756f74;  // "touched"
    return hash_of(hash_of(digest ^ kTouched) ^ (clock ? 0 : 1));
  }
  void write(const KeyLife& life, StateWriter& writer) const {
    writer.number(clock ? std::max<std::int64_t>(0, clock() - life.touched) : life.touched);
  }
  [[nodiscard]] KeyLife read(StateReader& reader) const {
    const auto read = reader.number<std::int64_t>();
    if (clock && (read < 0 || read > kLatestTime)) throw StateError("exported state has a time that can't be");
    return {clock ? clock() - read : read};
  }
};

}  // namespace rayelastic
