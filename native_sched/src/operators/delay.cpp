#include "rayelastic/operators/delay.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "operator/record_buffer.hpp"
#include "operator/waiting.hpp"

namespace rayelastic {

namespace {

using Clock = std::chrono::steady_clock;

struct Item {
  Clock::time_point due;
  std::size_t records = 0;  // 0: a mark
  Mark mark = {};
};

struct Delay {
  std::chrono::nanoseconds delay{0};
  std::size_t most = 0;
  RecordBuffer records;
  std::deque<Item> items = {};
  std::vector<Chunk*> chunks = {};
};

// What is due by now. False: stop.
bool release(Delay& self, rel_context* context) {
  while (!self.items.empty() && self.items.front().due <= Clock::now()) {
    const Item item = self.items.front();
    self.items.pop_front();
    if (item.records == 0) {
      context->mark(item.mark);
    } else {
      self.chunks.clear();
      self.records.chunks_of(item.records, self.chunks);
      for (Chunk* chunk : self.chunks) context->attach(chunk);
      const bool ok = context->emit(0, self.records.front(item.records).records, static_cast<std::int64_t>(item.records));
      self.records.pop(item.records);
      if (!ok) return false;
    }
    if (context->stopping()) return false;
  }
  return true;
}

// The same, once something is due.
bool wait_and_release(Delay& self, rel_context* context) { return wait_until(self.items.front().due, context) && release(self, context); }

std::int64_t process(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Delay*>(state);
  if (!release(self, context)) return REL_STOPPED;
  while (n == 0 && !self.items.empty()) {
    if (!wait_and_release(self, context)) return REL_STOPPED;
  }
  const std::size_t stride = self.records.stride();
  const auto* record = static_cast<const std::byte*>(in);
  const Clock::time_point due = Clock::now() + self.delay;
  for (auto left = static_cast<std::size_t>(n); left > 0;) {
    const std::size_t count = std::min(left, self.most - self.records.size());
    if (count == 0) {
      if (!wait_and_release(self, context)) return REL_STOPPED;
      continue;
    }
    self.records.append({record, count, stride, context->input_chunks()}, count);
    self.items.push_back({due, count});
    record += count * stride;
    left -= count;
  }
  return 0;
}

bool marked(void* state, Mark mark, rel_context* context) {
  auto& self = *static_cast<Delay*>(state);
  if (mark.kind != MarkKind::Command) self.items.push_back({Clock::now() + self.delay, 0, mark});
  (void)release(self, context);  // whoever has to stop knows it
  return false;
}

}  // namespace

OperatorSpec make_delay(std::string name, std::shared_ptr<const Schema> schema, std::chrono::nanoseconds delay, std::size_t most) {
  if (delay.count() < 0 || most == 0) throw std::invalid_argument("operator '" + name + "': a delay takes time, and room for a record");
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.marked = marked;
  spec.commanded = true;
  spec.flags = REL_ON_FINISH;
  spec.state = std::make_shared<Delay>(Delay{.delay = delay, .most = most, .records = RecordBuffer(schema->record_size())});
  spec.input = schema;
  spec.output = std::move(schema);
  return spec;
}

}  // namespace rayelastic
