#include "rayelastic/state/key_index.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace rayelastic {

namespace {

constexpr std::size_t kMapped = std::size_t{1} << 20;  // bytes from which memory is mapped: smaller tables are returned at once

}  // namespace

KeyIndex::Table::Table(std::size_t size) : mask(size - 1), held(size * sizeof(Bucket)) {
  RE_CHECK(std::has_single_bit(size));
  if (held < kMapped) {
    buckets = static_cast<Bucket*>(std::calloc(size, sizeof(Bucket)));
  } else {
    void* const mapped = ::mmap(nullptr, held, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    buckets = mapped == MAP_FAILED ? nullptr : static_cast<Bucket*>(mapped);
  }
  if (buckets == nullptr) throw std::bad_alloc();
}

// From the end on.
void KeyIndex::Table::give_back(std::size_t bytes) noexcept {
  if (buckets == nullptr) return;
  if ((mask + 1) * sizeof(Bucket) < kMapped) {
    std::free(buckets);
    held = 0;
  } else {
    const std::size_t part = std::min(bytes, held);
    held -= part;
    ::munmap(reinterpret_cast<std::byte*>(buckets) + held, part);
  }
  if (held == 0) buckets = nullptr;
}

}  // namespace rayelastic
