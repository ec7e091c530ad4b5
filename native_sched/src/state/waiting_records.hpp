// Records that an operator keeps until the watermark has reached them, in the order in which they are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash_ranges.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "state/record_pool.hpp"

namespace rayelastic {

// A kept record: first those that are due first, then by time, port and arrival.
struct Waiting {
  std::int64_t due;
  std::int64_t time;
  std::uint32_t port;
  std::uint64_t number;
  std::byte* record;
  std::uint64_t tag = 0;  // what is known of it; no part of the order

  // For a heap whose top comes first.
  friend bool operator<(const Waiting& one, const Waiting& other) noexcept {
    if (one.due != other.due) return one.due > other.due;
    if (one.time != other.time) return one.time > other.time;
    return one.port != other.port ? one.port > other.port : one.number > other.number;
  }
};

class WaitingRecords {
 public:
  // `time` and `due` of a record say when it happened and at which watermark it is due. `keys`, if any, are what it goes with; records without
  // keys are of hash 0. `tagged`: what is known of each is exported with it.
  WaitingRecords(std::shared_ptr<const Schema> schema, std::uint32_t ports, std::function<std::int64_t(const std::byte*)> time,
                 std::function<std::int64_t(std::int64_t)> due, KeyExtractor* keys = nullptr, bool tagged = false)
      : pool_(std::move(schema)), ports_(ports), time_(std::move(time)), due_(std::move(due)), keys_(keys), tagged_(tagged) {}

  void push(const std::byte* record, std::int64_t time, std::uint32_t port, std::uint64_t tag = 0) {
    RE_CHECK(port < ports_);
    heap_.push({due_(time), time, port, taken_++, pool_.keep(record), tag});
  }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
  [[nodiscard]] bool is_due(std::int64_t watermark) const noexcept { return !heap_.empty() && heap_.top().due <= watermark; }
  [[nodiscard]] const Waiting& top() const noexcept { return heap_.top(); }
  void pop() noexcept {
    RE_CHECK(!heap_.empty());
    pool_.drop(heap_.top().record);
    heap_.pop();
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return pool_.bytes() + heap_.heap().capacity() * sizeof(Waiting); }

  // --- see TimedState: records as port (4), tag (8) where they have one, record; in the order in which they are due
  [[nodiscard]] std::uint64_t layout() const noexcept;
  // From the record at place `at` on, which is set to where to go on. False: there is no more.
  [[nodiscard]] bool write(StateWriter& writer, const HashRanges& of, std::uint64_t& at, std::size_t max_bytes);
  // Calls visit(waiting) for all of them, in the order in which they are due.
  void for_each(const std::function<void(const Waiting& waiting)>& visit) const;
  // One record; throws StateError for what it can't be.
  void read(StateReader& reader, bool keep);
  void remove(const HashRanges& of);

 private:
  struct Heap : std::priority_queue<Waiting> {
    [[nodiscard]] std::vector<Waiting>& heap() noexcept { return c; }
    [[nodiscard]] const std::vector<Waiting>& heap() const noexcept { return c; }
  };

  [[nodiscard]] bool is_of(const std::byte* record, const HashRanges& of);
  [[nodiscard]] std::vector<Waiting> sorted() const;

  RecordPool pool_;
  std::uint32_t ports_;
  std::function<std::int64_t(const std::byte*)> time_;
  std::function<std::int64_t(std::int64_t)> due_;
  KeyExtractor* keys_;
  bool tagged_;
  Heap heap_;
  std::uint64_t taken_ = 0;
};

}  // namespace rayelastic
