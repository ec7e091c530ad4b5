// Memory for texts that a keyed table owns: rooms of a power of two bytes, carved from blocks, reused by size. A room has
// its capacity in the 8 bytes in front of it. Nothing is given back before the end, so total memory is at most about twice the
// peak of what was held in rooms of each size. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

class TextRooms {
 public:
  // An owned copy of `text`: inline, or in a new room.
  [[nodiscard]] StringView copy(const char* text, std::uint32_t bytes);
  // Makes `field`, made by copy() or inline, hold `text`, which may be a part of what it holds already. Reuses its room if that fits.
  void assign(StringView& field, const char* text, std::uint32_t bytes);
  // Makes `field`, made by copy(), resize() or empty, have `bytes` bytes, more than kInlineBytes; what it held stays, as far as it fits.
  // Returns its room, which may be written to (the prefix in `field` isn't kept).
  char* resize(StringView& field, std::uint32_t bytes);
  // Gives the room of `field` back for reuse; the field becomes empty.
  void clear(StringView& field) noexcept;
  // A text that many fields share and none reuses, overwrites or gives back.
  [[nodiscard]] StringView share(const char* text, std::uint32_t bytes);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t kClasses = 34;  // 2^0 .. 2^33: a text is shorter than 2^32
  static constexpr std::size_t kBlockBytes = 64 * 1024;

  [[nodiscard]] char* take(std::uint64_t capacity);
  [[nodiscard]] char* carve(std::size_t bytes);

  std::array<char*, kClasses> free_ = {};
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace rayelastic
