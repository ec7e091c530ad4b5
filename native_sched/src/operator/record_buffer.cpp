#include "operator/record_buffer.hpp"

#include <algorithm>
#include <cstring>

#include "rayelastic/assert.hpp"

namespace rayelastic {

void RecordBuffer::append(const Run& run, std::size_t count) {
  if (count == 0) return;
  RE_CHECK(run.stride == stride_ && count <= run.count);
  make_room(count);
  RE_CHECK(offset_ + size() + count <= capacity_);
  std::memcpy(memory_.get() + (offset_ + size()) * stride_, run.records, count * stride_);
  end_ += count;
  if (run.chunks.empty()) return;
  if (run.chunks.size() == 1 && !kept_.empty() && kept_.back().chunk.get() == run.chunks.front()) {
    kept_.back().end = end_;
    return;
  }
  kept_.push_back({end_, run.chunks.size() == 1 ? ChunkRef::share(run.chunks.front()) : Chunk::bundle(run.chunks)});
  chunk_bytes_ += kept_.back().chunk->size();
}

Run RecordBuffer::front(std::size_t count) const noexcept { return {memory_.get() + offset_ * stride_, std::min(count, size()), stride_}; }

void RecordBuffer::chunks_of(std::size_t count, std::vector<Chunk*>& chunks) const {
  RE_CHECK(count <= size());
  std::uint64_t covered = begin_;
  for (auto at = kept_.begin(); at != kept_.end() && covered < begin_ + count; ++at) {
    chunks.push_back(at->chunk.get());
    covered = at->end;
  }
}

void RecordBuffer::pop(std::size_t count) {
  RE_CHECK(count <= size());
  begin_ += count;
  offset_ = empty() ? 0 : offset_ + count;
  while (!kept_.empty() && kept_.front().end <= begin_) {
    RE_CHECK(chunk_bytes_ >= kept_.front().chunk->size());
    chunk_bytes_ -= kept_.front().chunk->size();
    kept_.pop_front();
  }
}

// Moves records to the front rather than grow, if that makes room for as many again.
void RecordBuffer::make_room(std::size_t count) {
  if (offset_ + size() + count <= capacity_) return;
  const std::size_t wanted = size() + count;
  if (2 * wanted <= capacity_) {
    std::memmove(memory_.get(), memory_.get() + offset_ * stride_, size() * stride_);
  } else {
    const std::size_t capacity = std::max(2 * wanted, kFirstRecords);
    std::unique_ptr<std::byte[], Free> memory(static_cast<std::byte*>(::operator new(capacity * stride_, std::align_val_t{kLine})));
    if (size() > 0) std::memcpy(memory.get(), memory_.get() + offset_ * stride_, size() * stride_);
    memory_ = std::move(memory);
    capacity_ = capacity;
  }
  offset_ = 0;
}

}  // namespace rayelastic
