// What an operator's function asks of its context in the middle of a call (abi.cpp): to send what it has before it returns, to send to one
// of its outputs, to send a mark; memory for its texts; to say why it failed. And how that is told.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kArenaBytes = 64 * 1024;
constexpr std::size_t kArenaAlignment = 8;

}  // namespace

// Never submit with the token: whoever is downstream may wait for it.
template <class Body>
void OperatorContext::without_token(Body body) {
  const bool in_token = in_token_;
  if (in_token) leave_token();
  body();
  if (in_token) enter_token();
}

bool OperatorContext::flush(std::int64_t n) {
  bool ok = n >= 0 && n <= out_capacity_;
  without_token([&] {
    if (!ok) {
      message_ = "flushed more records than its output has room for";
      report(-1);
      return;
    }
    flushing_ = true;
    ok = submit(out_, static_cast<std::size_t>(n)) && !stopping();
    flushing_ = false;
  });
  refused_ = refused_ || !ok;
  return ok;
}

bool OperatorContext::emit(std::int32_t output, const void* records, std::int64_t n) {
  bool ok = output >= 0 && static_cast<std::size_t>(output) <= further_outputs_.size() && out_stride_ != 0 && n >= 0;
  without_token([&] {
    if (!ok) {
      message_ = "emitted to output port " + std::to_string(output) + ", which it hasn't got, or a negative number of records";
      report(-1);
      return;
    }
    if (n == 0) return;
    Output* further = output == 0 ? nullptr : &further_outputs_[static_cast<std::size_t>(output) - 1];
    const bool has_text = further == nullptr ? text_out_ : further->has_text;
    const Run run{static_cast<const std::byte*>(records), static_cast<std::size_t>(n), further == nullptr ? out_stride_ : further->stride,
                  has_text ? output_chunks() : std::span<Chunk* const>{}};
    ok = inside_if_source([&] {
      if (!await_alignment()) return false;
      tuples_out_.add(static_cast<std::uint64_t>(n));
      if (beside_ != nullptr) return beside_->take_part(run) >= 0 && !stopping();
      if (further != nullptr && further->consumers.empty()) further->untaken.add(static_cast<std::uint64_t>(n));
      const std::vector<Port*>& consumers = further == nullptr ? consumers_ : further->consumers;
      return std::ranges::all_of(consumers, [&run](Port* port) { return port->accept(run, false); }) && !stopping();
    });
  });
  refused_ = refused_ || !ok;
  return ok;
}

bool OperatorContext::keep_text(void* field, const char* text, std::uint32_t bytes) {
  KeyedState* const keyed = op_.keyed_state();
  if (keyed != nullptr) keyed->keep_text(field, text, bytes);
  return keyed != nullptr;
}

void OperatorContext::mark(Mark mark) {
  without_token([&] {
    if (!inside_if_source([&] { return pass(mark); })) refused_ = true;
  });
}

bool OperatorContext::mark_output(std::int32_t output, Mark mark) {
  bool ok = true;
  without_token([&] { ok = inside_if_source([&] { return pass(static_cast<std::size_t>(output), mark); }) && !stopping(); });
  refused_ = refused_ || !ok;
  return ok;
}

std::size_t OperatorContext::room(std::int32_t output) const {
  std::size_t least = SIZE_MAX;
  for (const Port* port : output == 0 ? consumers_ : further_outputs_[static_cast<std::size_t>(output) - 1].consumers)
    least = std::min(least, port->capacity() - std::min(port->capacity(), port->queued()));
  return least;
}

void* OperatorContext::allocate(std::size_t bytes) {
  untidy_ = true;
  if (bytes > kArenaBytes / 4) {
    allocated_.push_back(Chunk::allocate(bytes));
    return allocated_.back()->data();
  }
  const std::size_t start = (arena_used_ + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
  if (!arena_ || start + bytes > arena_->size()) {
    ChunkRef fresh = Chunk::allocate(kArenaBytes);
    if (arena_ && arena_touched_) allocated_.push_back(std::move(arena_));
    arena_ = std::move(fresh);
    arena_used_ = bytes;
  } else {
    arena_used_ = start + bytes;
  }
  arena_touched_ = true;
  return arena_->data() + arena_used_ - bytes;
}

void OperatorContext::fail(std::string message) {
  untidy_ = true;
  message_ = std::move(message);
}

void OperatorContext::attach(Chunk* chunk) {
  untidy_ = true;
  if (attached_.empty() || attached_.back().get() != chunk) attached_.push_back(ChunkRef::share(chunk));
}

// Ends the job: the function failed on that record of a run, if it is one.
void OperatorContext::tell(std::string message, const Run& run, std::int64_t index) const {
  Failure failure{.operator_id = id_, .operator_name = op_.name(), .message = std::move(message)};
  if (index >= 0 && static_cast<std::size_t>(index) < run.count) {
    failure.index = index;
    failure.port = static_cast<std::size_t>(port());
    const std::byte* record = run.records + static_cast<std::size_t>(index) * run.stride;
    failure.record.assign(record, record + run.stride);
    for (Chunk* chunk : run.chunks) failure.chunks.push_back(ChunkRef::share(chunk));
  }
  engine_.listener.failed(std::move(failure));
}

void OperatorContext::report(std::int64_t index) {
  tell(std::move(message_), input_, index);
  refused_ = true;
  message_.clear();
}

void OperatorContext::interrupt() {
  if (!interrupted_.exchange(true, std::memory_order_acq_rel)) op_.interrupt();
}

}  // namespace rayelastic
