// Stands between the compiled methods of a keyed process and the engine: copies what they emit, with its texts, because their arguments may
// be gone before it is read; and executes the commands on their key's timers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operators/time/process.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/text_rooms.hpp"
#include "record/numbers.hpp"
#include "state/timer_set.hpp"
#include "state/timer_wheel.hpp"

namespace rayelastic {

// What there is of a key: at the front of its slot, its state record behind it, so that what a timer needs lies together.
struct ProcessKey {
  std::uint64_t is_kept = 1;  // what TimedState looks at
  TimerSet timers;
  std::uint32_t after_end = 0;  // timers that were set by timers once the input had ended
  std::int64_t touched = 0;     // when its time to live began
  std::int64_t expires = 0;     // when that is checked, with a time to live

  [[nodiscard]] std::byte* state() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
  [[nodiscard]] const std::byte* state() const noexcept { return reinterpret_cast<const std::byte*>(this + 1); }
};
static_assert(sizeof(ProcessKey) % 8 == 0 && alignof(ProcessKey) == 8);

class ProcessCalls final : public rel_context {
 public:
  // Whether `out` is the engine's buffer, which is flushed; else it is emitted.
  ProcessCalls(rel_context& engine, const Schema& schema, std::byte* out, std::size_t capacity, bool engines)
      : engine_(engine), schema_(schema), out_(out), capacity_(capacity), engines_(engines) {}

  // Where timers are set, and where the texts of states are.
  struct Tables {
    TimerWheel& wheel;
    TextRooms& texts;
    double ticks_per_second;
    bool ended;
  };

  enum class Outcome : std::uint8_t { Ok, Stopped, Failed };

  // Calls a method with one record, for a key, at a time; timers may be set for `first` and later. Whether it asked to forget the key's
  // state is in forgotten().
  [[nodiscard]] Outcome call(rel_process method, const std::byte* record, void* slot, ProcessKey& key, std::int64_t now, std::int64_t first,
                             Tables& tables) {
    if (used_ > capacity_ / 2 && !submit()) return Outcome::Stopped;
    slot_ = slot, key_ = &key, now_ = now, first_ = first, tables_ = &tables, forgotten_ = gone_ = flushed_ = false;
    given_ = at(used_);
    void* state = key.state();
    void* slots[] = {state};
    const std::int64_t produced = method(record, 1, given_, static_cast<std::int64_t>(capacity_ - used_), static_cast<void*>(slots), this);
    if (produced == REL_STOPPED) return Outcome::Stopped;
    if (produced < 0 || !problem_.empty()) return Outcome::Failed;
    settle(produced);
    return Outcome::Ok;
  }
  [[nodiscard]] bool forgotten() const noexcept { return forgotten_; }
  // Whether nothing is left of the key: no timer was set behind that.
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  // Why a call failed; empty if the method raised.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

  // What there is goes out. False: stop.
  [[nodiscard]] bool submit() {
    const auto n = static_cast<std::int64_t>(std::exchange(used_, 0));
    if (n == 0) return true;
    return engines_ ? engine_.flush(n) : engine_.emit(0, out_, n);
  }

  // --- what the methods ask for
  bool flush(std::int64_t n) override {
    settle(n);
    flushed_ = true;
    return submit();
  }
  void finish() override {}
  void* allocate(std::size_t bytes) override { return engine_.allocate(bytes); }
  void attach(Chunk* chunk) override { engine_.attach(chunk); }
  bool keep_text(void* field, const char* text, std::uint32_t bytes) override {
    tables_->texts.assign(*static_cast<StringView*>(field), text, bytes);
    return true;
  }
  void fail(std::string message) override { problem_ = std::move(message); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark) override {}
  [[nodiscard]] bool stopping() const override { return engine_.stopping(); }
  [[nodiscard]] std::int64_t watermark() const override { return now_; }
  [[nodiscard]] std::int32_t port() const override { return tables_->ended ? 1 : 0; }

  bool emit(std::int32_t output, const void* records, std::int64_t n) override {
    if (output != kTimerPort || n != 1) return false;
    const auto& command = *static_cast<const TimerCommand*>(records);  // no copy: it was written field by field just now
    switch (command.what) {
      case TimerCommand::At:
        return set(command.ticks);
      case TimerCommand::After:
        return set_after(command.seconds);
      case TimerCommand::Cancel:
        if (key_->timers.remove(command.ticks)) tables_->wheel.drop(1);
        return true;
      case TimerCommand::Forget:
        tables_->wheel.drop(key_->timers.size());
        key_->timers.clear();
        forgotten_ = gone_ = true;
        return true;
      default:
        return false;
    }
  }

 private:
  [[nodiscard]] std::byte* at(std::size_t record) const noexcept { return out_ + record * schema_.record_size(); }

  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool set(std::int64_t ticks) {
    if (ticks < first_)
      return refuse("ValueError: a timer at " + std::to_string(ticks) + ", and it is " + std::to_string(now_) + " already");
    gone_ = false;
    if (key_->timers.add(ticks)) tables_->wheel.push(ticks, slot_);
    return true;
  }

  // As TimeValues.span (time_values.py).
  bool set_after(double seconds) {
    constexpr double kNearly = 1e-12;
    if (!(seconds > 0)) return refuse("ValueError: " + std::to_string(seconds) + " is no time to wait: pass seconds, more than 0");
    const double exact = seconds * tables_->ticks_per_second;
    const double nearest = std::nearbyint(exact);
    const double ticks = std::fabs(exact - nearest) <= kNearly * std::max(exact, nearest) ? nearest : std::ceil(exact);
    constexpr double kLongest = 0x1p62;
    if (ticks > kLongest) return refuse("OverflowError: " + std::to_string(seconds) + " seconds are too long to wait");
    std::int64_t due = 0;
    if (__builtin_add_overflow(now_, static_cast<std::int64_t>(ticks), &due)) due = INT64_MAX - 1;
    return set(due);
  }

  // n records at given_ belong behind those that there are.
  void settle(std::int64_t n) {
    const auto count = static_cast<std::size_t>(n);
    if (flushed_ && count > 0) std::memmove(at(used_), given_, count * schema_.record_size());
    if (schema_.has_text()) {
      for (std::size_t record = used_; record < used_ + count; ++record) detach(at(record));
    }
    used_ += count;
  }

  void detach(std::byte* record) {
    for (const Field& field : schema_.fields()) {
      if (!is_text(field.type)) continue;
      auto& text = *reinterpret_cast<StringView*>(record + field.offset);
      if (text.is_inline()) continue;
      auto* room = static_cast<char*>(engine_.allocate(text.length));
      std::memcpy(room, text.pointer, text.length);
      text.pointer = room;
    }
  }

  rel_context& engine_;
  const Schema& schema_;
  std::byte* const out_;
  const std::size_t capacity_;
  const bool engines_;
  std::size_t used_ = 0;
  std::byte* given_ = nullptr;
  void* slot_ = nullptr;
  ProcessKey* key_ = nullptr;
  std::int64_t now_ = 0;
  std::int64_t first_ = 0;
  Tables* tables_ = nullptr;
  bool forgotten_ = false;
  bool gone_ = false;
  bool flushed_ = false;
  std::string problem_;
};

}  // namespace rayelastic
