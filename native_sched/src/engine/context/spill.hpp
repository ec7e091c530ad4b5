// Buffers what doesn't fit into the queue of a feedback edge: a loop of bounded queues whose producers block would block for ever (P34).
// Bounded in bytes; beyond that the PE fails. Guarded by the producer lock of its port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

class Spill {
 public:
  // `beyond` is called once more than `bytes` are kept.
  Spill(std::size_t stride, std::size_t bytes, std::function<void()> beyond)
      : bytes_(bytes), beyond_(std::move(beyond)), records_(stride) {}

  [[nodiscard]] bool empty() const noexcept { return records_.empty() && marks_.empty(); }
  // False: too much.
  [[nodiscard]] bool append(const Run& run) {
    records_.append(run, run.count);
    if (records_.bytes() <= bytes_) return true;
    beyond_();
    return false;
  }
  void append(Mark mark) { marks_.emplace_back(records_.end(), mark); }

  // Everything that `queue` has room for; at least something if the queue is empty.
  template <class Queue>
  void move_to(Queue& queue) {
    while (!empty()) {
      if (!marks_.empty() && marks_.front().first == records_.begin()) {
        if (!queue.push(marks_.front().second)) return;
        marks_.pop_front();
        continue;
      }
      const std::size_t ahead = marks_.empty() ? kRun : static_cast<std::size_t>(marks_.front().first - records_.begin());
      Run run = records_.front(ahead < kRun ? ahead : kRun);
      chunks_.clear();
      records_.chunks_of(run.count, chunks_);
      run.chunks = chunks_;
      const std::size_t taken = queue.push(run);
      RE_CHECK(taken <= run.count && run.count > 0);
      if (taken == 0) return;
      records_.pop(taken);
    }
  }

 private:
  static constexpr std::size_t kRun = 256;  // records moved at once, so that few chunks hang together

  const std::size_t bytes_;
  const std::function<void()> beyond_;
  RecordBuffer records_;
  std::deque<std::pair<std::uint64_t, Mark>> marks_;  // in front of the record of that number
  std::vector<Chunk*> chunks_;
};

}  // namespace rayelastic
