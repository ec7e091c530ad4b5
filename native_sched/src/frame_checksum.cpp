#include "frame_checksum.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
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
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t state = ~crc;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  auto narrow = static_cast<std::uint32_t>(state);
  for (; bytes > 0; ++at, --bytes) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
std::uint32_t by_instruction(std::uint32_t crc, const void* data, std::size_t bytes) noexcept {
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
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
  return by_instruction(crc, data, bytes);
#else
  return crc32c_by_table(crc, data, bytes);
#endif
}

}  // namespace rayelastic
