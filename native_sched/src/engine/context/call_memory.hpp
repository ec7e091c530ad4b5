// Memory for the texts of what one call of an operator emits.
//
// Invariant: what was allocated in a call lives until its end, and as long as any run that shares the chunk. An arena that no run shares is
// used again: a pipeline without queues works in warm memory.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

class CallMemory {
 public:
  [[nodiscard]] void* allocate(std::size_t bytes) {
    if (bytes > kArenaBytes / 4) {
      allocated_.push_back(Chunk::allocate(bytes));
      return allocated_.back()->data();
    }
    const std::size_t start = (used_ + kAlignment - 1) / kAlignment * kAlignment;
    if (!arena_ || start + bytes > arena_->size()) {
      ChunkRef fresh = Chunk::allocate(kArenaBytes);
      if (arena_ && touched_) allocated_.push_back(std::move(arena_));
      arena_ = std::move(fresh);
      used_ = bytes;
    } else {
      used_ = start + bytes;
    }
    touched_ = true;
    RE_CHECK(used_ <= arena_->size() && used_ >= bytes);
    return arena_->data() + used_ - bytes;
  }
  // Keeps a chunk alive for the records emitted until the next submit.
  void attach(Chunk* chunk) {
    RE_CHECK(chunk != nullptr);
    if (attached_.empty() || attached_.back().get() != chunk) attached_.push_back(ChunkRef::share(chunk));
  }
  void drop_attached() noexcept { attached_.clear(); }

  // All that emitted texts may point into: chunks of the input, and those of this call.
  [[nodiscard]] std::span<Chunk* const> chunks(std::span<Chunk* const> of_input) {
    combined_.assign(of_input.begin(), of_input.end());
    for (const ChunkRef& chunk : attached_) combined_.push_back(chunk.get());
    for (const ChunkRef& chunk : allocated_) combined_.push_back(chunk.get());
    if (touched_) combined_.push_back(arena_.get());
    return combined_;
  }
  void end_call() {
    attached_.clear();
    allocated_.clear();
    if (touched_ && arena_->is_unique()) used_ = 0;
    touched_ = false;
  }

 private:
  static constexpr std::size_t kArenaBytes = 64 * 1024;
  static constexpr std::size_t kAlignment = 8;

  std::vector<ChunkRef> attached_;   // until the next submit
  std::vector<ChunkRef> allocated_;  // full or odd-sized arena chunks, until the call ends
  std::vector<Chunk*> combined_;
  ChunkRef arena_;
  std::size_t used_ = 0;  // bytes of arena_
  bool touched_ = false;
};

}  // namespace rayelastic
