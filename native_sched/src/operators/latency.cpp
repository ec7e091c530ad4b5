#include "rayelastic/operators/latency.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace rayelastic {

namespace {

struct Timed {
  OperatorSpec inner;
  WallClock clock;
  std::int64_t period = 0;  // of a source, ns
  std::int64_t due = 0;
  std::shared_ptr<LatencyCounts> counts = {};  // of a sink
};

Timed& self(void* state) { return *static_cast<Timed*>(state); }

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  return self(state).inner.process(in, n, out, capacity, self(state).inner.state.get(), context);
}

std::int64_t process_source(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  Timed& timed = self(state);
  if (const std::int64_t now = timed.clock(); now >= timed.due) {
    timed.due = now + timed.period;
    context->mark({MarkKind::Time, now});
  }
  return process(in, n, out, capacity, state, context);
}

bool marked(void* state, Mark mark, rel_context* context) {
  Timed& timed = self(state);
  if (mark.kind == MarkKind::Time) timed.counts->add(std::chrono::nanoseconds(timed.clock() - mark.value));
  return timed.inner.marked == nullptr || timed.inner.marked(timed.inner.state.get(), mark, context);
}

OperatorSpec around(Timed timed, rel_process function) {
  OperatorSpec spec = timed.inner;
  spec.process = function;
  if (spec.interrupt != nullptr) spec.interrupt = [](void* state) { self(state).inner.interrupt(self(state).inner.state.get()); };
  spec.state = std::make_shared<Timed>(std::move(timed));
  return spec;
}

}  // namespace

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

OperatorSpec with_time_marks(OperatorSpec source, std::chrono::nanoseconds period, WallClock clock) {
  return around({.inner = std::move(source), .clock = clock, .period = period.count()}, process_source);
}

OperatorSpec with_latency(OperatorSpec sink, std::shared_ptr<LatencyCounts> counts, WallClock clock) {
  OperatorSpec spec = around({.inner = std::move(sink), .clock = clock, .counts = std::move(counts)}, process);
  spec.marked = marked;
  return spec;
}

}  // namespace rayelastic
