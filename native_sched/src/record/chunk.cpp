#include "rayelastic/record/chunk.hpp"

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace rayelastic {

ChunkRef Chunk::allocate(std::size_t bytes) {
  void* memory = std::malloc(sizeof(Chunk) + bytes);
  if (memory == nullptr) throw std::bad_alloc();
  auto* chunk = new (memory) Chunk(
      static_cast<char*>(memory) + sizeof(Chunk), bytes,
      [](Chunk* self) {
        self->~Chunk();
        std::free(self);
      },
      nullptr, nullptr);
  return ChunkRef::take(chunk);
}

ChunkRef Chunk::adopt(const void* data, std::size_t bytes, void (*release)(void*), void* owner) {
  auto* address = static_cast<char*>(const_cast<void*>(data));
  return ChunkRef::take(new Chunk(address, bytes, [](Chunk* self) { delete self; }, release, owner));
}

ChunkRef Chunk::bundle(std::span<Chunk* const> chunks) {
  using Members = std::vector<ChunkRef>;
  auto members = std::make_unique<Members>();
  members->reserve(chunks.size());
  std::size_t bytes = 0;
  for (Chunk* chunk : chunks) {
    members->push_back(ChunkRef::share(chunk));
    bytes += chunk->size();
  }
  ChunkRef bundle = adopt(nullptr, bytes, [](void* owner) { delete static_cast<Members*>(owner); }, members.get());
  (void)members.release();
  return bundle;
}

void Chunk::destroy() noexcept {
  if (release_ != nullptr) release_(owner_);
  free_(this);
}

}  // namespace rayelastic
