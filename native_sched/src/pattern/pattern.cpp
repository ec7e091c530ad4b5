// pattern.h over PCRE2, whose C interface is declared here as far as it is used: its header isn't everywhere where its library is.
#include "rayelastic/pattern/pattern.h"

#include <dlfcn.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>

namespace {

// pcre2.h, release 10.
constexpr std::uint32_t kUtf = 0x00080000U, kNoUtfCheck = 0x40000000U, kAnchored = 0x80000000U, kEndAnchored = 0x20000000U;
constexpr std::uint32_t kNotEmptyAtStart = 0x00000008U;
constexpr std::uint32_t kNeverBackslashC = 0x00100000U;
constexpr std::uint32_t kJitComplete = 1;
constexpr int kNoMatch = -1;
constexpr std::size_t kUnset = ~std::size_t{0};

struct Library {
  void* (*compile)(const unsigned char*, std::size_t, std::uint32_t, int*, std::size_t*, void*) = nullptr;
  int (*jit_compile)(void*, std::uint32_t) = nullptr;
  void* (*match_data)(const void*, void*) = nullptr;
  int (*match)(const void*, const unsigned char*, std::size_t, std::size_t, std::uint32_t, void*, void*) = nullptr;
  std::size_t* (*spans)(void*) = nullptr;
  void (*free_match_data)(void*) = nullptr;

  Library() {
    void* const handle = dlopen("libpcre2-8.so.0", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    const auto find = [handle](const char* name, auto& function) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
      return function != nullptr;
    };
    complete = find("pcre2_compile_8", compile) && find("pcre2_jit_compile_8", jit_compile) &&
               find("pcre2_match_data_create_from_pattern_8", match_data) && find("pcre2_match_8", match) &&
               find("pcre2_get_ovector_pointer_8", spans) && find("pcre2_match_data_free_8", free_match_data);
  }

  bool complete = false;
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

// Room for the spans of a match: one for each thread and pattern.
struct Rooms {
  std::map<const void*, void*> by_pattern;

  ~Rooms() {
    for (const auto& [pattern, room] : by_pattern) library().free_match_data(room);
  }

  void* of(const void* pattern) {
    void*& room = by_pattern[pattern];
    if (room == nullptr) room = library().match_data(pattern, nullptr);
    return room;
  }
};

}  // namespace

const void* rel_pattern(const char* pattern, std::int64_t bytes) {
  static std::mutex mutex;
  static std::map<std::string, void*, std::less<>> compiled;
  if (!library().complete) return nullptr;
  const std::string text{pattern, static_cast<std::size_t>(bytes)};
  const std::lock_guard lock{mutex};
  auto [place, is_new] = compiled.try_emplace(text, nullptr);
  if (is_new) {
    int error = 0;
    std::size_t where = 0;
    constexpr std::uint32_t kOptions = kUtf | kNeverBackslashC;
    place->second = library().compile(reinterpret_cast<const unsigned char*>(text.data()), text.size(), kOptions, &error, &where, nullptr);
    if (place->second != nullptr) library().jit_compile(place->second, kJitComplete);  // where it can't, the interpreter matches
  }
  return place->second;
}

std::int64_t rel_pattern_find(const void* pattern, const char* text, std::int64_t bytes, std::int64_t start, std::int32_t mode,
                              std::int64_t groups, std::int64_t* spans) {
  thread_local Rooms rooms;
  void* const room = rooms.of(pattern);
  if (room == nullptr) return -1;
  std::uint32_t options = kNoUtfCheck;
  if ((mode & (REL_PATTERN_MATCH | REL_PATTERN_FULL)) != 0) options |= kAnchored;
  if ((mode & REL_PATTERN_FULL) != 0) options |= kEndAnchored;
  if ((mode & REL_PATTERN_ADVANCE) != 0) options |= kNotEmptyAtStart;
  const int found = library().match(pattern, reinterpret_cast<const unsigned char*>(text), static_cast<std::size_t>(bytes),
                                    static_cast<std::size_t>(start), options, room, nullptr);
  if (found == kNoMatch) return 0;
  if (found < 0) return -1;
  const std::size_t* const offsets = library().spans(room);
  for (std::int64_t at = 0; at < 2 * groups; ++at)
    spans[at] = at < 2 * found && offsets[at] != kUnset ? static_cast<std::int64_t>(offsets[at]) : -1;
  return 1;
}
