// The times of the timers of a key, each once: in order while there are few, the next one last, as it goes first; by hash where there are
// many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class TimerSet {
 public:
  // False: it is there already.
  bool add(std::int64_t at) {
    RE_ASSERT(many_ == nullptr ? is_sorted() : few_.empty());
    if (many_ != nullptr) return many_->insert(at).second;
    const auto place = std::ranges::lower_bound(few_, at, std::greater());
    if (place != few_.end() && *place == at) return false;
    if (few_.size() == kFew) {
      many_ = std::make_unique<std::unordered_set<std::int64_t>>(few_.begin(), few_.end());
      few_ = {};
      return many_->insert(at).second;
    }
    if (few_.capacity() == 0) {
      few_.reserve(kFirst);
      few_.push_back(at);
      return true;
    }
    few_.insert(place, at);
    return true;
  }

  // False: it isn't there.
  bool remove(std::int64_t at) {
    RE_ASSERT(many_ == nullptr ? is_sorted() : few_.empty());
    if (many_ != nullptr) {
      const bool found = many_->erase(at) != 0;
      if (many_->empty()) many_ = nullptr;
      return found;
    }
    if (!few_.empty() && few_.back() == at) {
      few_.pop_back();
      return true;
    }
    const auto place = std::ranges::lower_bound(few_, at, std::greater());
    if (place == few_.end() || *place != at) return false;
    few_.erase(place);
    return true;
  }

  [[nodiscard]] bool contains(std::int64_t at) const {
    return many_ != nullptr ? many_->contains(at) : std::ranges::binary_search(few_, at, std::greater());
  }

  void clear() noexcept {
    few_.clear();
    many_ = nullptr;
  }

  [[nodiscard]] std::size_t size() const noexcept { return many_ != nullptr ? many_->size() : few_.size(); }

  // Where the next one is while they are few, for prefetching.
  [[nodiscard]] const void* next() const noexcept { return few_.data() + few_.size() - 1; }

  // In order.
  [[nodiscard]] std::vector<std::int64_t> times() const {
    if (many_ == nullptr) return {few_.rbegin(), few_.rend()};
    std::vector<std::int64_t> all(many_->begin(), many_->end());
    std::ranges::sort(all);
    return all;
  }

 private:
  [[nodiscard]] bool is_sorted() const { return std::ranges::is_sorted(few_, std::greater_equal()); }

  static constexpr std::size_t kFew = 512;  // 4 KiB to be moved at most
  static constexpr std::size_t kFirst = 3;  // as many as are in the smallest piece of memory that there is

  std::vector<std::int64_t> few_;
  std::unique_ptr<std::unordered_set<std::int64_t>> many_;
};

}  // namespace rayelastic
