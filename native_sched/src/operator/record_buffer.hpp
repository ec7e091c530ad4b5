// A FIFO of records in growing memory, with the chunks that their texts point into. For the stages of conjunctive operators and for the
// overflow of a feedback edge's queue. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

class RecordBuffer {
 public:
  explicit RecordBuffer(std::size_t stride) : stride_(stride) {}

  // Copies the first `count` records and keeps the run's chunks.
  void append(const Run& run, std::size_t count);
  // The first `count` records (as many as there are, at most), in place, until the next append; without chunks.
  [[nodiscard]] Run front(std::size_t count) const noexcept;
  // Adds the chunks of the first `count` records to `chunks`.
  void chunks_of(std::size_t count, std::vector<Chunk*>& chunks) const;
  void pop(std::size_t count);

  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  [[nodiscard]] bool empty() const noexcept { return end_ == begin_; }
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }  // records popped so far
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }      // records appended so far
  [[nodiscard]] std::size_t bytes() const noexcept { return size() * stride_ + chunk_bytes_; }

 private:
  struct Kept {
    std::uint64_t end = 0;  // of the records that need the chunk
    ChunkRef chunk;
  };
  struct Free {
    void operator()(std::byte* memory) const noexcept { ::operator delete(memory, std::align_val_t{kLine}); }
  };

  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kFirstRecords = 64;

  void make_room(std::size_t count);

  const std::size_t stride_;
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t capacity_ = 0;  // records
  std::size_t offset_ = 0;    // records before the first one
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::deque<Kept> kept_;
  std::size_t chunk_bytes_ = 0;
};

}  // namespace rayelastic
