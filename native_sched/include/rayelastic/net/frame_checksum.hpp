// CRC32C (Castagnoli), hardware where the processor has it. RFC 3720 B.4 gives the test vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rayelastic {

// Goes on from `crc`; begin with 0.
[[nodiscard]] std::uint32_t crc32c(std::uint32_t crc, const void* data, std::size_t bytes) noexcept;
// The same by tables, for processors without the instruction; a test compares the two.
[[nodiscard]] std::uint32_t crc32c_by_table(std::uint32_t crc, const void* data, std::size_t bytes) noexcept;

}  // namespace rayelastic
