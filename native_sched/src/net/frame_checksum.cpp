#include "rayelastic/net/frame_checksum.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace rayelastic {

namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// Slicing by 8: tables[k][b] is the effect of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xFF];
  }
  return tables;
}

constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
// What a state becomes after kBlockBytes zero bytes, by each of its bytes: joins the checksums of neighbouring blocks, because a CRC
// is linear. The instruction has a latency of three cycles and one may start in each, so three blocks go at once.
constexpr std::size_t kBlockBytes = 1024;

struct Shift {
  std::array<std::array<std::uint32_t, 256>, 4> tables{};

  Shift() noexcept {
    for (std::size_t bit = 0; bit < 32; ++bit) {
      std::uint32_t state = std::uint32_t{1} << bit;
      for (std::size_t i = 0; i < kBlockBytes; ++i) state = (state >> 8) ^ kTables[0][state & 0xFF];
      auto& table = tables[bit / 8];
      for (std::size_t byte = 0; byte < 256; ++byte) table[byte] ^= (byte >> (bit % 8) & 1U) != 0 ? state : 0;
    }
  }
  [[nodiscard]] std::uint32_t operator()(std::uint64_t state) const noexcept {
    return tables[0][state & 0xFF] ^ tables[1][state >> 8 & 0xFF] ^ tables[2][state >> 16 & 0xFF] ^ tables[3][state >> 24 & 0xFF];
  }
};

__attribute__((target("sse4.2,crc32"))) std::uint32_t by_instruction(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
  static const Shift shift;
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t state = ~crc;
  for (; bytes >= 3 * kBlockBytes; at += 3 * kBlockBytes, bytes -= 3 * kBlockBytes) {
    std::uint64_t second = 0, third = 0;
    for (std::size_t i = 0; i < kBlockBytes; i += 8) {
      std::uint64_t words[3];
      for (std::size_t block = 0; block < 3; ++block) std::memcpy(&words[block], at + block * kBlockBytes + i, 8);
      state = _mm_crc32_u64(state, words[0]);
      second = _mm_crc32_u64(second, words[1]);
      third = _mm_crc32_u64(third, words[2]);
    }
    state = shift(shift(state) ^ second) ^ third;
  }
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; bytes > 0; ++at, --bytes) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}
#elif defined(__aarch64__)
__attribute__((target("+crc"))) std::uint32_t by_instruction(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t state = ~crc;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = __crc32cd(state, word);
  }
  for (; bytes > 0; ++at, --bytes) state = __crc32cb(state, *at);
  return ~state;
}
#endif

}  // namespace

std::uint32_t crc32c_by_table(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t state = ~crc;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word |= std::uint64_t{at[i]} << (8 * i);
    word ^= state;
    state = 0;
    for (std::size_t i = 0; i < 8; ++i) state ^= kTables[7 - i][word >> (8 * i) & 0xFF];
  }
  for (; bytes > 0; ++at, --bytes) state = (state >> 8) ^ kTables[0][(state ^ *at) & 0xFF];
  return ~state;
}

std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  static const bool available = __builtin_cpu_supports("sse4.2");
  return available ? by_instruction(crc, data, bytes) : crc32c_by_table(crc, data, bytes);
#elif defined(__aarch64__)
  static const bool available = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return available ? by_instruction(crc, data, bytes) : crc32c_by_table(crc, data, bytes);
#else
  return crc32c_by_table(crc, data, bytes);
#endif
}

}  // namespace rayelastic
