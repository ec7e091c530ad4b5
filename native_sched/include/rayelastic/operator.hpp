// What the scheduler knows of an operator, and what an operator may ask of the engine while it runs.
// Nothing here knows queues, threads or policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rayelastic/abi.h"
#include "rayelastic/chunk.hpp"
#include "rayelastic/schema.hpp"

namespace rayelastic {

// Records that move together. Borrows everything: records and chunks stay valid for the length of the call that it is
// passed to. `chunks` are those that the records' string views may point into. `home`, if any, owns the memory of the records: whoever
// may write to them may also share it and so keep them, where they are, for longer than the call.
struct Run {
  const std::byte* records = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;
  std::span<Chunk* const> chunks = {};
  Chunk* home = nullptr;
};

enum class MarkKind : std::uint8_t { Window, Watermark, Epoch, Final };

struct Mark {
  MarkKind kind = MarkKind::Final;
  std::int64_t value = 0;
};

enum class ThreadingModel : std::uint8_t { Manual, Dynamic, Dedicated };

class KeyedState;  // keyed_state.hpp

// An operator as the scheduler runs it.
struct OperatorSpec {
  std::string name = {};
  rel_process process = nullptr;
  std::uint32_t flags = 0;                    // rel_flags
  std::shared_ptr<void> state = {};           // handed to process as it is, unless REL_KEYED
  std::shared_ptr<const Schema> input = {};   // null for sources
  std::shared_ptr<const Schema> output = {};  // null for sinks
  std::shared_ptr<KeyedState> keyed = {};     // with REL_KEYED
  void (*interrupt)(void* state) = nullptr;   // unblocks a process call that waits; called from any thread, once, at stop
  ThreadingModel model = ThreadingModel::Manual;
};

}  // namespace rayelastic

// The engine's side of an operator call, opaque to compiled code. One context per operator; never two threads at once.
struct rel_context {
  virtual ~rel_context() = default;

  // Submits out[0..n) and the chunks attached since the last submit. False: stop.
  [[nodiscard]] virtual bool flush(std::int64_t n) = 0;
  virtual void finish() = 0;
  [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
  // Keeps `chunk` alive for the records emitted until the next submit (in addition to the chunks of the input run).
  virtual void attach(rayelastic::Chunk* chunk) = 0;
  // What rel_keep_text does. False: the operator has no keyed state.
  [[nodiscard]] virtual bool keep_text(void* /*field*/, const char* /*text*/, std::uint32_t /*bytes*/) { return false; }
  virtual void fail(std::string message) = 0;
  // The chunks of the run that is being processed.
  [[nodiscard]] virtual std::span<rayelastic::Chunk* const> input_chunks() const = 0;
  // Passes a mark downstream, after what was flushed so far.
  virtual void mark(rayelastic::Mark mark) = 0;
  [[nodiscard]] virtual bool stopping() const = 0;
};
