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
#include "rayelastic/state/state_rows.hpp"
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
class DelayOperator final : public Operator, public KeylessState {
 public:
  DelayOperator(std::string name, const std::shared_ptr<const Schema>& schema, std::chrono::nanoseconds delay, std::size_t most)
      : Operator(std::move(name), {schema}, {schema}, REL_ON_FINISH),
        delay_(delay),
        most_(most),
        records_(schema->record_size()),
        form_of_records_(schema) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    if (!release(context)) return REL_STOPPED;
    const std::size_t stride = records_.stride();
    const Clock::time_point due = Clock::now() + delay_;
    for (auto left = static_cast<std::size_t>(n); left > 0;) {
      const std::size_t count = std::min(left, most_ - records_.size());
      if (count == 0) {
        if (!wait_and_release(context)) return REL_STOPPED;
        continue;
      }
      records_.append({in, count, stride, context->input_chunks()}, count);
      items_.push_back({due, count});
      in += count * stride;
      left -= count;
    }
    publish_bytes();
    return 0;
  }
  std::int64_t finish(std::byte*, std::int64_t, rel_context* context) override {
    if (!release(context)) return REL_STOPPED;
    while (!items_.empty()) {
      if (!wait_and_release(context)) return REL_STOPPED;
    }
    publish_bytes();
    return 0;
  }
  bool on_mark(Mark mark, rel_context* context) override {
    items_.push_back({Clock::now() + delay_, 0, mark});
    on_command(context);
    return false;
  }
  // It overtakes what waits, which is in the state of the checkpoint.
  bool on_barrier(std::int64_t, rel_context*) override { return true; }
  void on_command(rel_context* context) override {
    (void)release(context);  // whoever has to stop knows it
    publish_bytes();
  }
  [[nodiscard]] bool takes_commands() const override { return true; }
  [[nodiscard]] StateTable* state() override { return this; }

  [[nodiscard]] static bool is_saved(const Item& item) noexcept { return item.records > 0 || item.mark.kind == MarkKind::Watermark; }
  void publish_bytes() noexcept { publish(records_.bytes()); }

  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kDelay = 0x79616c6564;  // "delay"
    return hash_of(form_of_records_.layout() ^ kDelay);
  }

  void write(StateWriter& writer) const override {
    const Clock::time_point now = Clock::now();
    writer.number(static_cast<std::uint64_t>(std::ranges::count_if(items_, is_saved)));
    for (const Item& item : items_) {
      if (!is_saved(item)) continue;
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(item.due - now);
      writer.number(std::max<std::int64_t>(left.count(), 0));
      writer.number(static_cast<std::uint64_t>(item.records));
      writer.number(item.mark.value);
    }
    form_of_records_.write(records_, writer);
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
      if (restored) items_.push_back({now + left, static_cast<std::size_t>(waiting), {MarkKind::Watermark, value}});
    }
    if (form_of_records_.read(reader, restored ? &records_ : nullptr) != expected)
      throw StateError("exported state has other records than it says");
    if (!restored) return;
    restored_at_ = now;
    publish_bytes();
  }

  // Rows of the microseconds that were left of a record's delay when it was saved, and its fields.
  void write_rows(StateRows& rows) override {
    const std::byte* record = records_.front(records_.size()).records;
    for (const Item& item : items_) {
      for (std::size_t i = 0; i < item.records; ++i, record += records_.stride()) {
        rows.add();
        rows.set(0, std::chrono::duration_cast<std::chrono::microseconds>(item.due - restored_at_).count());
        rows.set(1, *inputs().front(), record);
      }
    }
  }

 private:
  // Emits what is due by now. False: stop.
  [[nodiscard]] bool release(rel_context* context) {
    while (!items_.empty() && items_.front().due <= Clock::now()) {
      const Item item = items_.front();
      items_.pop_front();
      if (item.records == 0) {
        context->mark(item.mark);
      } else {
        chunks_.clear();
        records_.chunks_of(item.records, chunks_);
        for (Chunk* chunk : chunks_) context->attach(chunk);
        const bool ok = context->emit(0, records_.front(item.records).records, static_cast<std::int64_t>(item.records));
        records_.pop(item.records);
        if (!ok) return false;
      }
      if (context->stopping()) return false;
    }
    return true;
  }
  // The same, once something is due.
  [[nodiscard]] bool wait_and_release(rel_context* context) { return wait_until(items_.front().due, context) && release(context); }

  const std::chrono::nanoseconds delay_;
  const std::size_t most_;
  RecordBuffer records_;
  std::deque<Item> items_;
  std::vector<Chunk*> chunks_;
  BufferedRecords form_of_records_;
  Clock::time_point restored_at_ = {};
};

}  // namespace

std::shared_ptr<Operator> make_delay(std::string name, std::shared_ptr<const Schema> schema, std::chrono::nanoseconds delay,
                                     std::size_t most) {
  if (delay.count() < 0 || most == 0) throw std::invalid_argument("operator '" + name + "': a delay takes time, and room for a record");
  return std::make_shared<DelayOperator>(std::move(name), schema, delay, most);
}

}  // namespace rayelastic
