// Which key has the most records of a stream: Space-Saving (Metwally, Agrawal, El Abbadi, ICDT'05) over a sample of them. Knows keys and
// their hashes, neither records nor replicas.
//
// Of some 32 records one is looked at; the gaps are random, so that no period of the stream keeps meeting them. kCounters keys are
// counted. One that isn't takes the place of that with the least count, which it may have had itself: that is its error. So a key with more
// than 1 / kCounters of what was looked at is among them, and has at least count - error of it. Now and then all counts are halved: they
// tell of the last thousand looks, not of all times.
// Touched by one thread at a time; it takes no memory after the first looks but for keys longer than those before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

struct HotKey {
  std::string bytes;        // of the key (key_extractor.hpp)
  bool null = false;        // whether it is that of one null field
  double share = 0.0;       // of the records, at least: 0 to 1
  std::uint64_t looks = 0;  // that there have been: by these the shares of several streams are weighed
};

class HotKeys {
 public:
  // To be called for each run. Calls key_at(i) for those of its records that are looked at. True: enough is new to be told.
  template <typename KeyAt>
  bool pass(std::size_t records, KeyAt&& key_at) {
    std::size_t at = gap_;
    for (; at < records; at += 1 + next_gap()) see(key_at(at));
    gap_ = at - records;
    if (untold_ < kTold) return false;
    untold_ = 0;
    return true;
  }

  void see(const StringView& key);

  // None before kTold looks.
  [[nodiscard]] std::optional<HotKey> hottest() const;

 private:
  struct Counter {
    std::uint64_t hash = 0;
    std::uint32_t count = 0;
    std::uint32_t error = 0;
    bool null = false;
    std::string bytes = {};
  };
  static constexpr std::size_t kCounters = 16;
  static constexpr std::uint64_t kEach = 128;   // looks at the start that leave no record out
  static constexpr std::uint64_t kMask = 63;    // gaps are 0 to 62 afterwards, 31 in the mean
  static constexpr std::uint32_t kKept = 1024;  // looks after which counts are halved
  static constexpr std::uint32_t kTold = 16;    // looks between two words

  [[nodiscard]] std::size_t next_gap() noexcept;

  std::array<Counter, kCounters> counters_ = {};
  std::uint32_t total_ = 0;  // of all counts, those of keys that lost their place among them
  std::uint64_t looks_ = 0;
  std::uint32_t untold_ = 0;
  std::size_t gap_ = 0;  // records that go by before the next look
  std::uint64_t dice_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace rayelastic
