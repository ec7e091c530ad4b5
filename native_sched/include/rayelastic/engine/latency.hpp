// Latency by sampled marks: a source writes the time into its stream now and then, and where the mark arrives at a sink, how long it was
// under way is counted. Queues and links make it wait as they do the records around it. At a fork it takes one way, another the next time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rayelastic {

// Nanoseconds since 1970: what the hosts of a job agree on, as far as their clocks do.
using WallClock = std::int64_t (*)();
[[nodiscard]] std::int64_t wall_clock() noexcept;

// How many marks took how long. Written by one thread at a time, read by any.
class LatencyCounts {
 public:
  // Bucket i: shorter than 2^i microseconds, and not in the one before; the last one: all that took longer.
  static constexpr std::size_t kBuckets = 28;
  using Counts = std::array<std::uint64_t, kBuckets>;

  // Clocks of two hosts may disagree: below zero counts as nothing.
  void add(std::chrono::nanoseconds latency) noexcept;
  [[nodiscard]] Counts read() const noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
};

}  // namespace rayelastic
