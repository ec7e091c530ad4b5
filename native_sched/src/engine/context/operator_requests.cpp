// What an operator's function asks of its context in the middle of a call (abi.cpp): to send what it has before it returns, to send to one
// of its outputs, to send a mark; memory for its texts; to say why it failed. And how that is told.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

bool OperatorContext::flush(std::int64_t n) {
  bool ok = n >= 0 && n <= call_.capacity;
  gil_.without(engine_, [&] {
    if (!ok) {
      call_.message = "flushed more records than its output has room for";
      report(-1);
      return;
    }
    call_.flushing = true;
    ok = submit(call_.out, static_cast<std::size_t>(n)) && !stopping();
    call_.flushing = false;
  });
  call_.refused = call_.refused || !ok;
  return ok;
}

bool OperatorContext::emit(std::int32_t output, const void* records, std::int64_t n) {
  bool ok = outputs_.has(output) && n >= 0;
  gil_.without(engine_, [&] {
    if (!ok) {
      call_.message = "emitted to output port " + std::to_string(output) + ", which it hasn't got, or a negative number of records";
      report(-1);
      return;
    }
    if (n == 0) return;
    OutputPort& port = outputs_[static_cast<std::size_t>(output)];
    RE_CHECK(records != nullptr);
    const Run run{static_cast<const std::byte*>(records), static_cast<std::size_t>(n), port.stride,
                  port.has_text ? output_chunks() : std::span<Chunk* const>{}};
    ok = inside_if_source([&] {
      if (!await_alignment()) return false;
      counters_.out.add(static_cast<std::uint64_t>(n));
      if (partial_.beside != nullptr) return partial_.beside->take_part(run) >= 0 && !stopping();
      if (port.consumers.empty()) port.untaken.add(static_cast<std::uint64_t>(n));
      return std::ranges::all_of(port.consumers, [&run](Port* consumer) { return consumer->accept(run, false); }) && !stopping();
    });
  });
  call_.refused = call_.refused || !ok;
  return ok;
}

bool OperatorContext::keep_text(void* field, const char* text, std::uint32_t bytes) {
  KeyedState* const keyed = op_->keyed_state();
  if (keyed != nullptr) keyed->keep_text(field, text, bytes);
  return keyed != nullptr;
}

void OperatorContext::mark(Mark mark) {
  gil_.without(engine_, [&] {
    if (!inside_if_source([&] { return pass(mark); })) call_.refused = true;
  });
}

bool OperatorContext::mark_output(std::int32_t output, Mark mark) {
  RE_CHECK(outputs_.has(output));
  bool ok = true;
  gil_.without(engine_, [&] { ok = inside_if_source([&] { return pass(static_cast<std::size_t>(output), mark); }) && !stopping(); });
  call_.refused = call_.refused || !ok;
  return ok;
}

std::size_t OperatorContext::room(std::int32_t output) const {
  RE_CHECK(outputs_.has(output));
  std::size_t least = SIZE_MAX;
  for (const Port* port : outputs_[static_cast<std::size_t>(output)].consumers)
    least = std::min(least, port->capacity() - std::min(port->capacity(), port->queued()));
  return least;
}

void* OperatorContext::allocate(std::size_t bytes) {
  call_.needs_cleanup = true;
  return memory_.allocate(bytes);
}

void OperatorContext::attach(Chunk* chunk) {
  call_.needs_cleanup = true;
  memory_.attach(chunk);
}

void OperatorContext::fail(std::string message) {
  call_.needs_cleanup = true;
  call_.message = std::move(message);
}

// What an exception says, with the operator's name: those of routers, gathers and links are in no user's program.
std::string OperatorContext::thrown(const std::exception& error) const { return op_->name() + ": " + error.what(); }

// Ends the job: the function failed on that record of a run, if it is one.
void OperatorContext::tell(std::string message, const Run& run, std::int64_t index) const {
  Failure failure{.operator_id = id_, .operator_name = op_->name(), .message = std::move(message)};
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
  tell(std::move(call_.message), call_.input, index);
  call_.refused = true;
  call_.message.clear();
}

void OperatorContext::interrupt() {
  if (!is_interrupted_.exchange(true, std::memory_order_acq_rel)) op_->interrupt();
}

}  // namespace rayelastic
