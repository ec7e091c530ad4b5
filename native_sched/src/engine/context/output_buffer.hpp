// The memory that an operator writes its output records to.
//
// Invariant: a chunk that a consumer shares is never written again: the next call begins with another one (renew).
#pragma once

#include <cstddef>
#include <cstdint>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

class OutputBuffer {
 public:
  // `stride` 0: a sink, which has none.
  OutputBuffer(std::size_t records, std::size_t stride) : bytes_(records * stride) {
    if (bytes_ > 0) renew();
  }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] Chunk* chunk() const noexcept { return chunk_.get(); }
  [[nodiscard]] bool is_shared() const noexcept { return chunk_ && !chunk_->is_unique(); }
  // Throws std::bad_alloc.
  void renew() {
    chunk_ = Chunk::allocate(bytes_ + kAlignment);
    const auto address = reinterpret_cast<std::uintptr_t>(chunk_->data());
    data_ = reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
    RE_CHECK(reinterpret_cast<std::uintptr_t>(data_) + bytes_ <= address + chunk_->size());
  }

 private:
  static constexpr std::size_t kAlignment = 64;

  ChunkRef chunk_;
  std::byte* data_ = nullptr;  // in chunk_, aligned
  const std::size_t bytes_;
};

}  // namespace rayelastic
