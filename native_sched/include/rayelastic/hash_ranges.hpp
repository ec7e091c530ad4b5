// Some of all keys, by their hashes (Joker J16): any number of ranges that don't overlap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rayelastic {

struct HashRange {
  std::uint64_t low = 0;
  std::uint64_t high = UINT64_MAX;  // included
};

class HashRanges {
 public:
  HashRanges() : HashRanges(0, UINT64_MAX) {}
  HashRanges(std::uint64_t low, std::uint64_t high) : HashRanges({{low, high}}) {}
  // Throws std::invalid_argument for a range that ends before it begins, and for two that overlap.
  explicit HashRanges(std::vector<HashRange> ranges) : ranges_(std::move(ranges)) {
    std::ranges::sort(ranges_, {}, &HashRange::low);
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      if (ranges_[i].high < ranges_[i].low || (i > 0 && ranges_[i].low <= ranges_[i - 1].high))
        throw std::invalid_argument("ranges of hashes overlap, or end before they begin");
    }
  }

  [[nodiscard]] bool contains(std::uint64_t hash) const noexcept { return overlaps({hash, hash}); }
  [[nodiscard]] bool overlaps(HashRange range) const noexcept {
    const auto behind = std::ranges::upper_bound(ranges_, range.high, {}, &HashRange::low);
    return behind != ranges_.begin() && range.low <= std::prev(behind)->high;
  }
  [[nodiscard]] bool has_all() const noexcept { return ranges_.size() == 1 && ranges_[0].low == 0 && ranges_[0].high == UINT64_MAX; }

 private:
  std::vector<HashRange> ranges_;  // in order
};

}  // namespace rayelastic
