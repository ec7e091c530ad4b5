#include "rayelastic/state/text_rooms.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kHead = sizeof(std::uint64_t);
constexpr std::uint64_t kSmallest = 16;

std::uint64_t capacity_of(const char* room) noexcept {
  std::uint64_t capacity;
  std::memcpy(&capacity, room - kHead, kHead);
  return capacity;
}

void set_capacity(char* room, std::uint64_t capacity) noexcept { std::memcpy(room - kHead, &capacity, kHead); }

std::size_t class_of(std::uint64_t capacity) noexcept { return static_cast<std::size_t>(std::countr_zero(capacity)); }

}  // namespace

char* TextRooms::carve(std::size_t bytes) {
  RE_CHECK(bytes % kHead == 0);
  if (bytes > kBlockBytes / 4) {  // a block of its own; the current one stays in use
    blocks_.emplace_back(std::make_unique_for_overwrite<char[]>(bytes));
    bytes_ += bytes;
    return blocks_.back().get();
  }
  if (bytes > left_) {
    blocks_.emplace_back(std::make_unique_for_overwrite<char[]>(kBlockBytes));
    bytes_ += kBlockBytes;
    next_ = blocks_.back().get();
    left_ = kBlockBytes;
  }
  char* taken = next_;
  next_ += bytes;
  left_ -= bytes;
  RE_CHECK(left_ <= kBlockBytes - bytes);
  return taken;
}

char* TextRooms::take(std::uint64_t capacity) {
  RE_CHECK(std::has_single_bit(capacity) && capacity >= kSmallest);
  char*& head = free_[class_of(capacity)];
  if (head != nullptr) {  // a free room holds the address of the next one
    char* room = head;
    std::memcpy(&head, room, sizeof head);
    RE_CHECK(capacity_of(room) == capacity);
    return room;
  }
  char* room = carve(kHead + static_cast<std::size_t>(capacity)) + kHead;
  set_capacity(room, capacity);
  return room;
}

StringView TextRooms::copy(const char* text, std::uint32_t bytes) {
  if (bytes <= StringView::kInlineBytes) return {text, bytes};
  char* room = take(std::max(kSmallest, std::bit_ceil(std::uint64_t{bytes})));
  std::memcpy(room, text, bytes);
  return {room, bytes};
}

void TextRooms::assign(StringView& field, const char* text, std::uint32_t bytes) {
  if (!field.is_inline() && bytes > StringView::kInlineBytes) {
    char* room = const_cast<char*>(field.pointer);
    const std::uint64_t capacity = capacity_of(room);
    if (bytes <= capacity && capacity / 8 <= std::max<std::uint64_t>(bytes, kSmallest)) {  // fits, and isn't far too large
      std::memmove(room, text, bytes);
      field = StringView(room, bytes);
      return;
    }
  }
  const StringView copied = copy(text, bytes);  // before the old text goes: `text` may be a part of it
  clear(field);
  field = copied;
}

char* TextRooms::resize(StringView& field, std::uint32_t bytes) {
  if (!field.is_inline() && bytes <= capacity_of(field.pointer)) {
    field.length = bytes;
    return const_cast<char*>(field.pointer);
  }
  char* room = take(std::max(kSmallest, std::bit_ceil(std::uint64_t{bytes})));
  std::memcpy(room, field.data(), std::min(field.length, bytes));
  clear(field);
  field.length = bytes;
  field.pointer = room;
  return room;
}

void TextRooms::clear(StringView& field) noexcept {
  if (!field.is_inline()) {
    char* room = const_cast<char*>(field.pointer);
    const std::uint64_t capacity = capacity_of(room);
    if (capacity != 0) {  // not a shared one
      RE_CHECK(std::has_single_bit(capacity) && field.length <= capacity);
      char*& head = free_[class_of(capacity)];
      std::memcpy(room, &head, sizeof head);
      head = room;
    }
  }
  field = StringView();
}

StringView TextRooms::share(const char* text, std::uint32_t bytes) {
  if (bytes <= StringView::kInlineBytes) return {text, bytes};
  char* room = carve((kHead + bytes + kHead - 1) / kHead * kHead) + kHead;  // the next room stays aligned
  set_capacity(room, 0);
  std::memcpy(room, text, bytes);
  return {room, bytes};
}

}  // namespace rayelastic
