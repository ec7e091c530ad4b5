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
      mark(ranges_[i]);
    }
  }

  [[nodiscard]] bool contains(std::uint64_t hash) const noexcept {
    const Share share = shares_[hash >> kBelow];
    return share == Share::Some ? overlaps({hash, hash}) : share == Share::All;
  }
  [[nodiscard]] bool overlaps(HashRange range) const noexcept {
    const auto behind = std::ranges::upper_bound(ranges_, range.high, {}, &HashRange::low);
    return behind != ranges_.begin() && range.low <= std::prev(behind)->high;
  }
  [[nodiscard]] bool has_all() const noexcept { return ranges_.size() == 1 && ranges_[0].low == 0 && ranges_[0].high == UINT64_MAX; }

 private:
  enum class Share : std::uint8_t { None, Some, All };
  static constexpr unsigned kTop = 12;  // bits of a hash that mostly decide
  static constexpr unsigned kBelow = 64 - kTop;

  void mark(HashRange range) noexcept {
    for (std::uint64_t top = range.low >> kBelow; top <= range.high >> kBelow; ++top) {
      const bool all = range.low <= top << kBelow && ((top << kBelow) | (UINT64_MAX >> kTop)) <= range.high;
      shares_[top] = all ? Share::All : Share::Some;
    }
  }

  std::vector<HashRange> ranges_;                                           // in order
  std::vector<Share> shares_ = std::vector<Share>(std::size_t{1} << kTop);  // by top bits: how much of what begins so is in a range
};

}  // namespace rayelastic
