#include "rayelastic/operators/delay.hpp"

#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "operator/record_buffer.hpp"
#include "operator/waiting.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/state/keyless_state.hpp"
#include "state/keyless/buffered_records.hpp"

namespace rayelastic {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::hours kLongestDelay{std::int64_t{24} * 366 * 100};

struct Item {
  Clock::time_point due;
  std::size_t records = 0;  // 0: a mark
  Mark mark = {};
};

// As exported: how many items (8), and of each its nanoseconds to go (8), records (8), and of a mark its value (8); then the records. The only
// marks are watermarks: the others mean nothing behind a restart.
struct Delay final : KeylessState {
  std::chrono::nanoseconds delay{0};
  std::size_t most = 0;
  RecordBuffer records;
  std::deque<Item> items = {};
  std::vector<Chunk*> chunks = {};
  BufferedRecords form_of_records;

  Delay(std::chrono::nanoseconds wait, std::size_t most_records, const std::shared_ptr<const Schema>& schema)
      : delay(wait), most(most_records), records(schema->record_size()), form_of_records(schema) {}

  [[nodiscard]] static bool is_saved(const Item& item) noexcept { return item.records > 0 || item.mark.kind == MarkKind::Watermark; }
  void tell_bytes() noexcept { publish(records.bytes()); }

  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kDelay = 0x79616c6564;  // "delay"
    return hash_of(form_of_records.layout() ^ kDelay);
  }

  void write(StateWriter& writer) const override {
    const Clock::time_point now = Clock::now();
    writer.number(static_cast<std::uint64_t>(std::ranges::count_if(items, is_saved)));
    for (const Item& item : items) {
      if (!is_saved(item)) continue;
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(item.due - now);
      writer.number(std::max<std::int64_t>(left.count(), 0));
      writer.number(static_cast<std::uint64_t>(item.records));
      writer.number(item.mark.value);
    }
    form_of_records.write(records, writer);
  }

  void read(StateReader& reader, bool restored) override {
    const Clock::time_point now = Clock::now();
    const auto count = reader.number<std::uint64_t>();
    std::uint64_t expected = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::chrono::nanoseconds left(reader.number<std::int64_t>());
      const auto waiting = reader.number<std::uint64_t>();
      const auto value = reader.number<std::int64_t>();
      if (left.count() < 0 || left > kLongestDelay) throw StateError("exported state is of a delay that there isn't");
      expected += waiting;
      if (restored) items.push_back({now + left, static_cast<std::size_t>(waiting), {MarkKind::Watermark, value}});
    }
    if (form_of_records.read(reader, restored ? &records : nullptr) != expected)
      throw StateError("exported state has other records than it says");
    if (restored) tell_bytes();
  }
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
  self.tell_bytes();
  return 0;
}

// An epoch overtakes what waits, which is in the state there.
bool marked(void* state, Mark mark, rel_context* context) {
  if (mark.kind == MarkKind::Epoch) return true;
  auto& self = *static_cast<Delay*>(state);
  if (mark.kind != MarkKind::Command) self.items.push_back({Clock::now() + self.delay, 0, mark});
  (void)release(self, context);  // whoever has to stop knows it
  self.tell_bytes();
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
  auto self = std::make_shared<Delay>(delay, most, schema);
  spec.store = self;
  spec.state = std::move(self);
  spec.input = schema;
  spec.output = std::move(schema);
  return spec;
}

}  // namespace rayelastic
