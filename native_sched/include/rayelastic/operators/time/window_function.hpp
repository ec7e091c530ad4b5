// What windows accumulate of their records, and emit, where that isn't a native aggregate: a user's function in another language. The window
// operator alone decides which records belong to which window, and when a window is emitted, corrected and dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/state_copy.hpp"

namespace rayelastic {

// Ticks; the end is exclusive.
struct Span {
  std::int64_t start;
  std::int64_t end;
};

// States are addresses of what the function keeps. Methods that return false have failed, and problem() says why.
class WindowFunction {
 public:
  // `moment`: the key fields, then start and end of a window.
  explicit WindowFunction(std::shared_ptr<const Schema> moment) : moment_(std::move(moment)) {}
  virtual ~WindowFunction() = default;
  WindowFunction(const WindowFunction&) = delete;
  WindowFunction& operator=(const WindowFunction&) = delete;

  [[nodiscard]] const std::shared_ptr<const Schema>& moment() const noexcept { return moment_; }
  // Whether assign() chooses the windows of a record.
  [[nodiscard]] virtual bool assigns() const noexcept = 0;

  // All methods below but submit() are called while the result lives: no copy of the state is read meanwhile. Null: it can't be called any more.
  [[nodiscard]] virtual std::shared_ptr<void> enter() = 0;
  // The record that assign() and add() are about.
  [[nodiscard]] virtual bool take(const std::byte* record) = 0;
  [[nodiscard]] virtual bool assign(std::int64_t at, std::vector<Span>& spans) = 0;
  [[nodiscard]] virtual bool begin(std::byte*& state) = 0;
  // `complete`: the window is to be emitted as it is.
  [[nodiscard]] virtual bool add(std::byte*& state, bool& complete) = 0;
  [[nodiscard]] virtual bool emit(const std::byte* moment, std::byte* state, bool final, bool corrected) = 0;
  virtual void drop(std::byte* state) noexcept = 0;
  [[nodiscard]] virtual std::string problem() = 0;

  // What was emitted leaves. Returns what `process` returns; with no `out`, all of it leaves, and it returns 0 or REL_STOPPED.
  [[nodiscard]] virtual std::int64_t submit(std::byte* out, std::int64_t capacity, rel_context* context) = 0;

  // `of_copy`: what can't be written ends the copy; else it is a StateError.
  virtual void write(std::byte* state, StateWriter& writer, bool of_copy) = 0;
  // Null, and only a check, unless `make_it`.
  [[nodiscard]] virtual std::byte* read(StateReader& reader, bool make_it) = 0;
  // A copy, begun by `begin`, which takes what the reader calls behind each key; the reader enters.
  using BeginCopy = std::function<std::shared_ptr<StateCopy>(std::function<void()> rest)>;
  [[nodiscard]] virtual std::shared_ptr<StateCopy> copy(const BeginCopy& begin) = 0;

 private:
  const std::shared_ptr<const Schema> moment_;
};

}  // namespace rayelastic
