// Where Flush marks are seen, and who waits for them (router.hpp). Knows nothing of what they are good for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>

#include "rayelastic/mutex.hpp"

namespace rayelastic {

// From here on marks aren't the coordinator's: behind the last record of an edge there is one of its own, where it comes into a PE.
constexpr std::int64_t kFirstEndMark = std::int64_t{1} << 62;

class MarkLog {
 public:
  void note(std::int64_t value) {
    {
      const Lock guard(mutex_);
      ++seen_[value];
      if (seen_.size() > kKept) seen_.erase(seen_.begin());
    }
    changed_.notify_all();
  }
  // Nothing more comes.
  void close() {
    {
      const Lock guard(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  // True once the mark was seen `count` times, or nothing more comes.
  [[nodiscard]] bool wait(std::int64_t value, unsigned count, std::chrono::nanoseconds patience) {
    Lock lock(mutex_);
    return changed_.wait_for(lock, patience, [&]() REL_HELD(mutex_) {
      const auto at = seen_.find(value);
      return closed_ || (at != seen_.end() && at->second >= count);
    });
  }

 private:
  static constexpr std::size_t kKept = 256;  // marks have rising values, and few are under way at once

  Mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, unsigned> seen_ REL_GUARDED_BY(mutex_);
  bool closed_ REL_GUARDED_BY(mutex_) = false;
};

}  // namespace rayelastic
