// Words, lengths, places and case of UTF-8 text, as CPython's str has them (Objects/unicodeobject.c).
#include "rayelastic/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "text_classes.hpp"

namespace {

using rayelastic::text::space_length;

constexpr std::array<bool, 256> may_be_space() {
  std::array<bool, 256> table = {};
  for (const int byte : {0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0xc2, 0xe1, 0xe2, 0xe3})
    table[static_cast<std::size_t>(byte)] = true;
  return table;
}
constexpr std::array<bool, 256> kMayBeSpace = may_be_space();

// The first byte at or after `at` that is white space or may begin one. Eight at a time: a byte is plain if it is 0x21 to 0x7f.
const char* skip_plain(const char* at, const char* limit) noexcept {
  constexpr std::uint64_t kHigh = 0x8080808080808080ULL;
  for (; limit - at >= 8; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    const std::uint64_t at_least_0x21 = (word & ~kHigh) + 0x5f5f5f5f5f5f5f5fULL;
    const std::uint64_t others = (~at_least_0x21 | word) & kHigh;
    if (others != 0) {
      at += std::countr_zero(others) / 8;
      if (kMayBeSpace[static_cast<unsigned char>(*at)]) return at;
      at -= 7;  // a control or non-ASCII byte: on with the next one
    }
  }
  while (at < limit && !kMayBeSpace[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

template <char kFirst, char kLast, char kDifference>
int change_case(const char* text, int64_t bytes, char* out) noexcept {
  unsigned char all = 0;
  for (int64_t i = 0; i < bytes; ++i) {  // one pass without branches, for the vectoriser
    const char byte = text[i];
    all |= static_cast<unsigned char>(byte);
    out[i] = static_cast<char>(byte >= kFirst && byte <= kLast ? byte + kDifference : byte);
  }
  return all < 0x80 ? 0 : 1;
}

}  // namespace

extern "C" {

int64_t rel_text_next_word(const char* text, int64_t bytes, int64_t from, int64_t* end) {
  const char* limit = text + bytes;
  const char* at = text + from;
  while (at < limit) {
    if (!kMayBeSpace[static_cast<unsigned char>(*at)]) break;
    const int length = space_length(at, limit);
    if (length == 0) break;
    at += length;
  }
  if (at >= limit) return -1;
  const char* begin = at++;
  while ((at = skip_plain(at, limit)) < limit && space_length(at, limit) == 0) ++at;
  *end = at - text;
  return begin - text;
}

int64_t rel_text_strip(const char* text, int64_t bytes, int64_t* end) {
  const char* begin = text;
  const char* limit = text + bytes;
  for (int length = 0; begin < limit && (length = space_length(begin, limit)) != 0;) begin += length;
  while (limit > begin) {
    const char* last = limit - 1;
    while (last > begin && is_continuation(*last)) --last;
    if (space_length(last, limit) == 0) break;
    limit = last;
  }
  *end = limit - text;
  return begin - text;
}

int64_t rel_text_length(const char* text, int64_t bytes) {
  int64_t length = 0;
  for (int64_t i = 0; i < bytes; ++i) length += is_continuation(text[i]) ? 0 : 1;
  return length;
}

int64_t rel_text_offset(const char* text, int64_t bytes, int64_t index) {
  for (int64_t i = 0; i < bytes; ++i) {
    if (!is_continuation(text[i]) && index-- == 0) return i;
  }
  return bytes;
}

int64_t rel_text_find_bytes(const char* text, int64_t bytes, const char* part, int64_t part_bytes, int64_t from) {
  if (from < 0 || from > bytes) return -1;
  if (part_bytes == 0) return from;
#ifdef __GLIBC__
  const void* found = memmem(text + from, static_cast<std::size_t>(bytes - from), part, static_cast<std::size_t>(part_bytes));
  return found == nullptr ? -1 : static_cast<const char*>(found) - text;
#else
  const std::size_t found = std::string_view(text, static_cast<std::size_t>(bytes))
                                .find(std::string_view(part, static_cast<std::size_t>(part_bytes)), static_cast<std::size_t>(from));
  return found == std::string_view::npos ? -1 : static_cast<int64_t>(found);
#endif
}

int64_t rel_text_find(const char* text, int64_t bytes, const char* part, int64_t part_bytes) {
  const int64_t offset = rel_text_find_bytes(text, bytes, part, part_bytes, 0);
  return offset < 0 ? -1 : rel_text_length(text, offset);
}

int rel_text_contains(const char* text, int64_t bytes, const char* part, int64_t part_bytes) {
  return rel_text_find_bytes(text, bytes, part, part_bytes, 0) >= 0 ? 1 : 0;
}

// The order of UTF-8 bytes is the order of code points.
int rel_text_compare(const char* a, int64_t a_bytes, const char* b, int64_t b_bytes) {
  const int order = a_bytes == 0 || b_bytes == 0 ? 0 : std::memcmp(a, b, static_cast<std::size_t>(std::min(a_bytes, b_bytes)));
  if (order != 0) return order;
  return a_bytes < b_bytes ? -1 : (a_bytes > b_bytes ? 1 : 0);
}

int rel_text_lower(const char* text, int64_t bytes, char* out) { return change_case<'A', 'Z', 'a' - 'A'>(text, bytes, out); }

int rel_text_upper(const char* text, int64_t bytes, char* out) { return change_case<'a', 'z', 'A' - 'a'>(text, bytes, out); }

}  // extern "C"
