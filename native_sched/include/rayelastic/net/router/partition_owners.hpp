// Which target owns each partition of the keys.
//
// Invariant: a partition has one owner, or it is held and has none; what is said of all partitions together is right after each assign().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class PartitionOwners {
 public:
  static constexpr std::uint16_t kHeld = UINT16_MAX;

  // By partition; none is held.
  explicit PartitionOwners(std::vector<std::uint16_t> owners) : owners_(std::move(owners)) {
    if (owners_.empty()) return;  // the router refuses it
    last_sole_ = owners_[0];
    find_sole();
    stride_ = std::max<std::size_t>(1, owners_.size() * 5 / 8);  // about the golden section: of any owners, each comes evenly
    while (std::gcd(stride_, owners_.size()) != 1) ++stride_;
  }
  void assign(std::span<const std::uint16_t> partitions, std::uint16_t target) noexcept {
    for (const std::uint16_t partition : partitions) {
      RE_CHECK(partition < owners_.size());
      held_ += (target == kHeld ? 1 : 0) - (owners_[partition] == kHeld ? 1 : 0);
      owners_[partition] = target;
    }
    RE_ASSERT(std::ranges::count(owners_, kHeld) == static_cast<std::ptrdiff_t>(held_));
    find_sole();
  }

  [[nodiscard]] std::size_t size() const noexcept { return owners_.size(); }
  [[nodiscard]] const std::vector<std::uint16_t>& all() const noexcept { return owners_; }
  [[nodiscard]] std::uint16_t of_hash(std::uint64_t hash) const noexcept {  // as in plan/hash_ring.py
    __extension__ using Wide = unsigned __int128;
    return owners_[static_cast<std::size_t>(static_cast<Wide>(hash) * owners_.size() >> 64)];
  }
  [[nodiscard]] bool has(std::uint16_t target) const noexcept { return std::ranges::find(owners_, target) != owners_.end(); }
  [[nodiscard]] bool are_all(std::span<const std::uint16_t> partitions, std::uint16_t target) const noexcept {
    return std::ranges::all_of(partitions, [&](std::uint16_t partition) { return owners_[partition] == target; });
  }
  [[nodiscard]] std::vector<std::uint16_t> partitions_of(std::uint16_t target) const {
    std::vector<std::uint16_t> found;
    for (std::size_t partition = 0; partition < owners_.size(); ++partition) {
      if (owners_[partition] == target) found.push_back(static_cast<std::uint16_t>(partition));
    }
    return found;
  }
  [[nodiscard]] bool are_held() const noexcept { return held_ == owners_.size(); }  // all
  [[nodiscard]] bool is_any_held() const noexcept { return held_ > 0; }
  [[nodiscard]] std::uint16_t sole() const noexcept { return sole_; }            // the owner of everything; kHeld: there are several
  [[nodiscard]] std::uint16_t last_sole() const noexcept { return last_sole_; }  // who owned everything last
  // The owner of the next partition, in a rotation in which owners come by the partitions that they have.
  [[nodiscard]] std::uint16_t next() noexcept {
    cursor_ = (cursor_ + stride_) % owners_.size();
    return owners_[cursor_];
  }

 private:
  void find_sole() noexcept {
    const bool all = std::ranges::all_of(owners_, [this](std::uint16_t owner) { return owner == owners_[0]; });
    sole_ = all ? owners_[0] : kHeld;
    if (sole_ != kHeld) last_sole_ = sole_;
  }

  std::vector<std::uint16_t> owners_;
  std::size_t held_ = 0;  // partitions
  std::uint16_t sole_ = kHeld;
  std::uint16_t last_sole_ = kHeld;
  std::size_t cursor_ = 0;  // the partition of next()
  std::size_t stride_ = 1;  // to the next one: neighbours have the same owner
};

}  // namespace rayelastic
