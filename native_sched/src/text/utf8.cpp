// UTF-8 as CPython's decoder takes it: strict validation, and the "replace" error handler (Unicode 15, section 3.9, "best
// practices for using U+FFFD": one for each maximal part of an ill-formed sequence).
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rayelastic/text/text.h"

namespace {

struct Sequence {
  int length;  // bytes of it that belong together
  bool valid;
};

bool in_range(unsigned char byte, unsigned char low, unsigned char high) noexcept { return byte >= low && byte <= high; }

// The sequence at `at`, which isn't ASCII.
Sequence sequence_at(const char* at, const char* limit) noexcept {
  const auto byte = [at](int i) { return static_cast<unsigned char>(at[i]); };
  const std::ptrdiff_t left = limit - at;
  const unsigned char lead = byte(0);
  if (lead < 0xc2 || lead > 0xf4) return {1, false};
  // The second byte's range excludes overlong forms, surrogates and what is above U+10FFFF.
  const unsigned char low = lead == 0xe0 ? 0xa0 : (lead == 0xf0 ? 0x90 : 0x80);
  const unsigned char high = lead == 0xed ? 0x9f : (lead == 0xf4 ? 0x8f : 0xbf);
  if (left < 2 || !in_range(byte(1), low, high)) return {1, false};
  if (lead < 0xe0) return {2, true};
  if (left < 3 || !in_range(byte(2), 0x80, 0xbf)) return {2, false};
  if (lead < 0xf0) return {3, true};
  if (left < 4 || !in_range(byte(3), 0x80, 0xbf)) return {3, false};
  return {4, true};
}

// The first byte at or after `at` that is not ASCII.
const char* skip_ascii(const char* at, const char* limit) noexcept {
  while (limit - at >= 32) {
    std::uint64_t words[4];
    std::memcpy(words, at, 32);
    if (((words[0] | words[1] | words[2] | words[3]) & 0x8080808080808080ULL) != 0) break;
    at += 32;
  }
  while (at < limit && static_cast<unsigned char>(*at) < 0x80) ++at;
  return at;
}

}  // namespace

extern "C" {

int rel_text_is_valid(const char* text, int64_t bytes) {
  const char* limit = text + bytes;
  for (const char* at = skip_ascii(text, limit); at < limit; at = skip_ascii(at, limit)) {
    do {  // scripts other than Latin come in rows
      const Sequence sequence = sequence_at(at, limit);
      if (!sequence.valid) return 0;
      at += sequence.length;
    } while (at < limit && static_cast<unsigned char>(*at) >= 0x80);
  }
  return 1;
}

int64_t rel_text_repair(const char* text, int64_t bytes, char* out) {
  const char* limit = text + bytes;
  char* to = out;
  const auto copy = [&to](const char* from, std::ptrdiff_t length) {
    if (length > 0) std::memcpy(to, from, static_cast<std::size_t>(length));
    to += length;
  };
  for (const char* at = text; at < limit;) {
    const char* ascii_end = skip_ascii(at, limit);
    copy(at, ascii_end - at);
    at = ascii_end;
    if (at == limit) break;
    const Sequence sequence = sequence_at(at, limit);
    copy(sequence.valid ? at : "\xef\xbf\xbd", sequence.valid ? sequence.length : 3);
    at += sequence.length;
  }
  return to - out;
}

}  // extern "C"
