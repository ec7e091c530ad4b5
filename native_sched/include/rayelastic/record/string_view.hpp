// Text and bytes in a record: 16 bytes, length plus 12 inline bytes, or length, 4-byte prefix and a pointer
// into a Chunk that the run carries. Inline exactly when length <= 12, unused inline bytes are zero, so equal
// short texts have equal 16 bytes. Knows nothing of ownership: whoever keeps a view keeps its chunk (chunk.hpp).
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace rayelastic {

struct StringView {
  static constexpr std::uint32_t kInlineBytes = 12;

  std::uint32_t length = 0;
  char prefix[4] = {};  // the first 4 bytes, inline or not
  union {
    char rest[8] = {};
    const char* pointer;
  };

  StringView() noexcept = default;

  StringView(const char* text, std::uint32_t bytes) noexcept : length(bytes) {
    if (bytes <= kInlineBytes) {
      std::memcpy(prefix, text, bytes < 4 ? bytes : 4);
      if (bytes > 4) std::memcpy(rest, text + 4, bytes - 4);
    } else {
      std::memcpy(prefix, text, 4);
      pointer = text;
    }
  }

  [[nodiscard]] bool is_inline() const noexcept { return length <= kInlineBytes; }
  [[nodiscard]] const char* data() const noexcept { return is_inline() ? prefix : pointer; }
  // Valid while this object stays in place (inline text lives in the record itself).
  [[nodiscard]] std::string_view view() const noexcept { return {data(), length}; }

  friend bool operator==(const StringView& a, const StringView& b) noexcept {
    std::uint64_t first_a, first_b, second_a, second_b;
    std::memcpy(&first_a, &a, 8), std::memcpy(&first_b, &b, 8);
    if (first_a != first_b) return false;
    std::memcpy(&second_a, a.rest, 8), std::memcpy(&second_b, b.rest, 8);
    if (second_a == second_b) return true;
    return !a.is_inline() && std::memcmp(a.pointer + 4, b.pointer + 4, a.length - 4) == 0;
  }
};

static_assert(sizeof(StringView) == 16 && alignof(StringView) == 8);

}  // namespace rayelastic
