// One operator as it runs: its output buffer, the chunks of its current call, its counters, and the way of its output to the ports
// that consume it. Architecture section 4: scheduling decisions happen inside flush only (P06). Knows nothing of threads, queues
// or threading models: whoever calls execute, accept or run_source is the only one that does so at that time (Port proves it).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine.hpp"
#include "rayelastic/operator.hpp"

namespace rayelastic {

class Port;

class alignas(64) OperatorContext final : public rel_context {
 public:
  OperatorContext(OperatorId id, const OperatorSpec& spec, Engine& engine);

  // Wiring, before the start.
  void add_consumer(Port* port) { consumers_.push_back(port); }
  void add_input() { ++inputs_; }

  // Processes a run and submits what comes out. writable: the records are the callee's to overwrite. token_held: the caller
  // entered the token for this operator; it is left again here. False: stop.
  [[nodiscard]] bool execute(const Run& run, bool writable, bool token_held);
  [[nodiscard]] bool accept(Mark mark);
  // Runs a source until it has finished or has to stop.
  void run_source();

  [[nodiscard]] OperatorId id() const noexcept { return id_; }
  [[nodiscard]] const OperatorSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] bool needs_token() const noexcept { return needs_token_; }
  [[nodiscard]] std::size_t in_stride() const noexcept { return in_stride_; }
  [[nodiscard]] bool is_final() const noexcept { return final_.load(std::memory_order_acquire); }
  [[nodiscard]] bool is_terminal() const noexcept { return consumers_.empty(); }
  [[nodiscard]] std::uint64_t tuples_in() const noexcept { return tuples_in_.get(); }
  [[nodiscard]] std::uint64_t tuples_out() const noexcept { return tuples_out_.get(); }
  // Calls the operator's interrupt hook, the first time. A source ends then.
  void interrupt();

  // rel_context, called by the operator's function.
  [[nodiscard]] bool flush(std::int64_t n) override;
  void finish() override { finished_ = true; }
  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void attach(Chunk* chunk) override;
  [[nodiscard]] bool keep_text(void* field, const char* text, std::uint32_t bytes) override;
  void fail(std::string message) override;
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return input_.chunks; }
  void mark(Mark mark) override;
  [[nodiscard]] bool stopping() const override;

 private:
  [[nodiscard]] bool step(EngineThread& thread, Run& run, bool& writable, bool token_held, OperatorContext*& next);
  [[nodiscard]] bool call_and_submit();
  [[nodiscard]] std::int64_t call(std::byte* out, std::int64_t capacity, bool token_held);
  [[nodiscard]] std::int64_t process(std::byte* out, std::int64_t capacity);
  [[nodiscard]] bool submit(std::byte* out, std::size_t count);
  [[nodiscard]] bool pass(Mark mark);
  [[nodiscard]] std::span<Chunk* const> output_chunks();
  void end_call();
  void renew_buffer();
  void report(std::int64_t index);
  [[nodiscard]] bool is_source() const noexcept { return (spec_.flags & REL_SOURCE) != 0; }

  // What every call touches comes first, in as few cache lines as can be: long pipelines don't fit the first cache otherwise.
  const rel_process process_;
  void* const state_;
  Engine& engine_;
  const std::size_t in_stride_;
  const std::size_t out_stride_;
  const std::size_t capacity_;  // records in buffer_, also of slots_
  const std::uint32_t number_;  // id_, as EngineThread::doing has it
  const bool in_place_;
  const bool text_out_;
  const bool needs_token_;
  const bool keyed_;
  // Of the current call.
  bool in_token_ = false;
  bool flushing_ = false;
  bool untidy_ = false;  // one of message_, attached_, allocated_, arena_touched_ is set
  std::byte* out_ = nullptr;
  std::int64_t out_capacity_ = 0;
  Run input_;
  Counter tuples_in_;
  Counter tuples_out_;
  std::vector<Port*> consumers_;
  ChunkRef home_;                // of buffer_; null for sinks
  std::byte* buffer_ = nullptr;  // in home_, aligned

  bool refused_ = false;  // flush said stop
  bool finished_ = false;
  bool arena_touched_ = false;
  std::string message_;
  std::vector<ChunkRef> attached_;   // until the next submit
  std::vector<ChunkRef> allocated_;  // full or odd-sized arena chunks, until the call ends
  std::vector<Chunk*> combined_;
  std::vector<void*> slots_;
  ChunkRef arena_;
  std::size_t arena_used_ = 0;

  const OperatorId id_;
  const OperatorSpec spec_;
  std::size_t inputs_ = 0;
  std::size_t finals_ = 0;
  std::atomic<bool> final_{false};  // release: everything that the operator did is done
  std::atomic<bool> interrupted_{false};
};

}  // namespace rayelastic
