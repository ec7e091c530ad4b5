// The heap, counted: what is in use, and the largest piece that was asked for. What the kernel calls resident would be another thing: it
// misses memory that nobody has touched yet or that was given back, and has an emulator's own, 280 KiB for each thread that ever ran.
// One file of an executable includes this: it defines malloc and its kin around glibc's; a sanitizer's have a hook for it.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace rayelastic::check {

inline std::atomic<std::size_t> heap_in_use{0};
inline std::atomic<std::size_t> largest_request{0};

inline void count_request(std::size_t asked, std::size_t held) noexcept {
  heap_in_use.fetch_add(held, std::memory_order_relaxed);
  std::size_t largest = largest_request.load(std::memory_order_relaxed);
  while (asked > largest && !largest_request.compare_exchange_weak(largest, asked, std::memory_order_relaxed)) {
  }
}

}  // namespace rayelastic::check

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

extern "C" {  // of sanitizer/allocator_interface.h, which GCC doesn't install

int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, std::size_t), void (*freed)(const volatile void*));
std::size_t __sanitizer_get_allocated_size(const volatile void* memory);

}  // extern "C"

namespace rayelastic::check {

inline const int counting =
    __sanitizer_install_malloc_and_free_hooks([](const volatile void*, std::size_t bytes) { count_request(bytes, bytes); },
                                              [](const volatile void* memory) {
                                                if (memory != nullptr)
                                                  heap_in_use.fetch_sub(__sanitizer_get_allocated_size(memory), std::memory_order_relaxed);
                                              });

}  // namespace rayelastic::check

#else

extern "C" {

void* __libc_malloc(std::size_t bytes) noexcept;
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept;
void* __libc_realloc(void* memory, std::size_t bytes) noexcept;
void* __libc_memalign(std::size_t alignment, std::size_t bytes) noexcept;
void __libc_free(void* memory) noexcept;

void* malloc(std::size_t bytes) noexcept {
  void* const memory = __libc_malloc(bytes);
  rayelastic::check::count_request(bytes, malloc_usable_size(memory));
  return memory;
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
  void* const memory = __libc_calloc(count, bytes);
  rayelastic::check::count_request(count * bytes, malloc_usable_size(memory));
  return memory;
}

void* realloc(void* memory, std::size_t bytes) noexcept {
  const std::size_t held = malloc_usable_size(memory);
  void* const moved = __libc_realloc(memory, bytes);
  if (moved == nullptr && bytes != 0) return nullptr;  // what there was is still there
  rayelastic::check::heap_in_use.fetch_sub(held, std::memory_order_relaxed);
  rayelastic::check::count_request(bytes, malloc_usable_size(moved));
  return moved;
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  void* const memory = __libc_memalign(alignment, bytes);
  rayelastic::check::count_request(bytes, malloc_usable_size(memory));
  return memory;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept { return memalign(alignment, bytes); }

int posix_memalign(void** place, std::size_t alignment, std::size_t bytes) noexcept {
  void* const memory = memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *place = memory;
  return 0;
}

void free(void* memory) noexcept {
  rayelastic::check::heap_in_use.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  __libc_free(memory);
}

}  // extern "C"

#endif
