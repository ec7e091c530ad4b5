// Reference-counted heap memory that string views point into.
//
// Owners: whoever holds a ChunkRef. A Run borrows (its caller owns for the length of the call); a queue
// retains what it holds until its consumer has passed; keyed state copies instead of retaining.
// Lifetime: the release that brings the count to zero frees; releases are acq_rel, retains relaxed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rayelastic {

class ChunkRef;

class Chunk {
 public:
  // Fresh memory of `bytes` bytes; throws std::bad_alloc.
  [[nodiscard]] static ChunkRef allocate(std::size_t bytes);
  // Foreign memory (an Arrow buffer, a mapped file) that `release(owner)` gives back.
  [[nodiscard]] static ChunkRef adopt(const void* data, std::size_t bytes, void (*release)(void*), void* owner);
  // One reference that stands for many; retains each of them.
  [[nodiscard]] static ChunkRef bundle(std::span<Chunk* const> chunks);

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

  // True for the holder of the only reference: nobody else can read the chunk any more.
  [[nodiscard]] bool is_unique() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

  [[nodiscard]] char* data() noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // bytes kept alive, members of a bundle included

  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

 private:
  Chunk(char* data, std::size_t size, void (*free)(Chunk*), void (*release)(void*), void* owner) noexcept
      : data_(data), size_(size), free_(free), release_(release), owner_(owner) {}
  void destroy() noexcept;

  std::atomic<std::uint32_t> references_{1};
  char* data_;
  std::size_t size_;
  void (*free_)(Chunk*);
  void (*release_)(void*);
  void* owner_;
};

class ChunkRef {
 public:
  ChunkRef() noexcept = default;
  // Takes over one reference that the caller holds.
  [[nodiscard]] static ChunkRef take(Chunk* chunk) noexcept {
    ChunkRef reference;
    reference.chunk_ = chunk;
    return reference;
  }
  // Adds a reference.
  [[nodiscard]] static ChunkRef share(Chunk* chunk) noexcept {
    if (chunk != nullptr) chunk->retain();
    return take(chunk);
  }
  ChunkRef(const ChunkRef& other) noexcept : chunk_(other.chunk_) {
    if (chunk_ != nullptr) chunk_->retain();
  }
  ChunkRef(ChunkRef&& other) noexcept : chunk_(std::exchange(other.chunk_, nullptr)) {}
  ChunkRef& operator=(ChunkRef other) noexcept {
    std::swap(chunk_, other.chunk_);
    return *this;
  }
  ~ChunkRef() {
    if (chunk_ != nullptr) chunk_->release();
  }

  [[nodiscard]] Chunk* get() const noexcept { return chunk_; }
  Chunk* operator->() const noexcept { return chunk_; }
  explicit operator bool() const noexcept { return chunk_ != nullptr; }
  // Gives the reference away without releasing it.
  [[nodiscard]] Chunk* leak() noexcept { return std::exchange(chunk_, nullptr); }

 private:
  Chunk* chunk_ = nullptr;
};

}  // namespace rayelastic
