#include "rayelastic/engine/latency.hpp"

#include <algorithm>
#include <bit>

namespace rayelastic {

std::int64_t wall_clock() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void LatencyCounts::add(std::chrono::nanoseconds latency) noexcept {
  const std::int64_t microseconds = std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::microseconds>(latency).count());
  const auto bucket = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(microseconds)));
  counts_[std::min(bucket, kBuckets - 1)].fetch_add(1, std::memory_order_relaxed);
}

LatencyCounts::Counts LatencyCounts::read() const noexcept {
  Counts counts{};
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) counts[bucket] = counts_[bucket].load(std::memory_order_relaxed);
  return counts;
}

}  // namespace rayelastic
