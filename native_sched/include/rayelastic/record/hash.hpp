// The hash of keys: of content alone, the same in every process and on every (little-endian) machine, because hash
// ranges decide where keyed state lives (Joker J12, J16). 128-bit multiply mixing in the manner of wyhash.
// Not a defence against keys chosen to collide. Changing a constant here moves every key: the test vectors hold them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

static_assert(std::endian::native == std::endian::little, "records, hashes and exports are little-endian bytes");

namespace hashing {

inline constexpr std::uint64_t kFirst = 0xa0761d6478bd642fULL;  // the primes of wyhash
inline constexpr std::uint64_t kSecond = 0xe7037ed1a0b428dbULL;
inline constexpr std::uint64_t kThird = 0x8ebc6af09c88c6e3ULL;

[[nodiscard]] inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

[[nodiscard]] inline std::uint64_t load(const char* bytes) noexcept {
  std::uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word;
}

}  // namespace hashing

// Hash of the content (length and bytes) of a text, whether inline or not.
[[nodiscard]] inline std::uint64_t hash_of(const StringView& text) noexcept {
  using namespace hashing;
  std::uint64_t head;  // length and first four bytes
  std::memcpy(&head, &text, 8);
  std::uint64_t state = head ^ kFirst;  // never zero for inline texts: kFirst's low half isn't a length <= 12
  if (text.is_inline()) {
    state = mix(state, load(text.rest) ^ kSecond);
  } else {
    const char* bytes = text.pointer;
    std::size_t left = text.length;
    for (; left > 16; left -= 16, bytes += 16) state = mix(load(bytes) ^ state, load(bytes + 8) ^ kSecond);
    const char* end = text.pointer + text.length;  // the last 16 bytes, overlapping; 13 to 15 bytes overlap themselves
    const char* low = text.length >= 16 ? end - 16 : text.pointer;
    state = mix(load(low) ^ state, load(end - 8) ^ kSecond);
  }
  return mix(state ^ head, kThird);
}

// Hash of an integer; not that of its eight bytes as text.
[[nodiscard]] inline std::uint64_t hash_of(std::uint64_t value) noexcept {
  return hashing::mix(hashing::mix(value ^ hashing::kFirst, hashing::kSecond) ^ value, hashing::kThird);
}

}  // namespace rayelastic
