// Helpers of the functions of text.h: code points of valid UTF-8, indices and offsets, and memory from the caller.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "rayelastic/text/text.h"

namespace rayelastic::text {

[[nodiscard]] inline std::string_view seen(const rel_text* text) noexcept { return {text->data, static_cast<std::size_t>(text->bytes)}; }

[[nodiscard]] inline rel_text given(std::string_view text) noexcept { return {text.data(), static_cast<std::int64_t>(text.size())}; }

[[nodiscard]] inline bool is_continuation(char byte) noexcept { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

[[nodiscard]] inline bool is_ascii(std::string_view text) noexcept {
  unsigned char all = 0;
  for (const char byte : text) all |= static_cast<unsigned char>(byte);
  return all < 0x80;
}

// Code points, or bytes.
[[nodiscard]] inline std::int64_t length(std::string_view text, bool is_bytes) noexcept {
  if (is_bytes) return static_cast<std::int64_t>(text.size());
  std::int64_t points = 0;
  for (const char byte : text) points += is_continuation(byte) ? 0 : 1;
  return points;
}

// The bytes of the character that a byte begins.
[[nodiscard]] inline std::int64_t width(char first) noexcept {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

// The code point at `at`, which is moved behind it.
[[nodiscard]] inline std::uint32_t decode(const char*& at) noexcept {
  const auto next = [&at] { return static_cast<std::uint32_t>(static_cast<unsigned char>(*at++)); };
  const std::uint32_t first = next();
  if (first < 0x80) return first;
  if (first < 0xe0) return (first & 0x1f) << 6 | (next() & 0x3f);
  std::uint32_t point = first < 0xf0 ? first & 0x0f : first & 0x07;
  for (int more = first < 0xf0 ? 2 : 3; more > 0; --more) point = point << 6 | (next() & 0x3f);
  return point;
}

// The code point in front of `at`, which is moved to it.
[[nodiscard]] inline std::uint32_t decode_before(const char*& at) noexcept {
  do --at;
  while (is_continuation(*at));
  const char* here = at;
  return decode(here);
}

// Writes a code point; returns where the next one goes.
inline char* encode(std::uint32_t point, char* to) noexcept {
  const auto put = [&to](std::uint32_t byte) { *to++ = static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6), put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12), put(0x80 | (point >> 6 & 0x3f)), put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18), put(0x80 | (point >> 12 & 0x3f)), put(0x80 | (point >> 6 & 0x3f)), put(0x80 | (point & 0x3f));
  }
  return to;
}

// The offset of character number `index`, which isn't negative; the size if there are no more than that.
[[nodiscard]] inline std::int64_t offset(std::string_view text, std::int64_t index, bool is_bytes) noexcept {
  const auto size = static_cast<std::int64_t>(text.size());
  if (index >= size) return size;
  if (is_bytes) return index;
  std::int64_t at = 0;
  while (index > 0 && at < size) at += width(text[static_cast<std::size_t>(at)]), --index;
  return std::min(at, size);
}

// Bytes copied; returns where the next ones go.
inline char* put(std::string_view text, char* to) noexcept {
  if (!text.empty()) std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;  // StringView's length has 32 bits

// Memory of the room, nullptr if there is none.
[[nodiscard]] inline char* memory(const rel_text_room* room, std::int64_t bytes) noexcept {
  return bytes > kMostBytes ? nullptr : static_cast<char*>(room->allocate(room->context, std::max<std::int64_t>(bytes, 1)));
}

}  // namespace rayelastic::text
