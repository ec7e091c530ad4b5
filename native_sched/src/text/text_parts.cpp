// Texts cut from their end and into lines: CPython's stringlib/split.h. Parts are found twice, first to know how many there are.
#include "text/text_classes.hpp"
#include "text/text_service.hpp"

using namespace rayelastic::text;

namespace {

// The bytes of the white space that ends at `stop`, 0 if there is none; str.isspace(), or bytes.isspace().
int space_before(const char* begin, const char* stop, bool is_bytes) noexcept {
  if (stop == begin) return 0;
  const char* last = stop - 1;
  if (is_bytes) return *last == ' ' || (*last >= '\t' && *last <= '\r') ? 1 : 0;
  while (last > begin && is_continuation(*last)) --last;
  return space_length(last, stop);
}

// The bytes of the line end at `at`, 0 if there is none.
int end_length(const char* at, const char* limit, bool is_bytes) noexcept {
  const auto byte = [&](int i) { return limit - at > i ? static_cast<unsigned char>(at[i]) : 0; };
  if (byte(0) == '\n') return 1;
  if (byte(0) == '\r') return byte(1) == '\n' ? 2 : 1;
  if (is_bytes) return 0;
  if (byte(0) == 0x0b || byte(0) == 0x0c || (byte(0) >= 0x1c && byte(0) <= 0x1e)) return 1;
  if (byte(0) == 0xc2 && byte(1) == 0x85) return 2;                                           // U+0085
  return byte(0) == 0xe2 && byte(1) == 0x80 && (byte(2) == 0xa8 || byte(2) == 0xa9) ? 3 : 0;  // U+2028, U+2029
}

template <class Each>
void each_from_right_by_space(std::string_view all, std::int64_t most, bool is_bytes, Each&& each) noexcept {
  const char* const begin = all.data();
  const char* stop = begin + all.size();
  for (;;) {
    for (int length = 0; (length = space_before(begin, stop, is_bytes)) != 0;) stop -= length;
    if (stop == begin) return;
    const char* start = stop;
    if (most-- == 0) {
      start = begin;
    } else {
      while (start > begin && space_before(begin, start, is_bytes) == 0) {
        do --start;
        while (!is_bytes && is_continuation(*start));
      }
    }
    each(std::string_view(start, static_cast<std::size_t>(stop - start)));
    stop = start;
  }
}

template <class Each>
void each_from_right(std::string_view all, std::string_view separator, std::int64_t most, Each&& each) noexcept {
  std::size_t at = 0;
  while (most-- != 0 && (at = all.rfind(separator)) != std::string_view::npos) {
    each(all.substr(at + separator.size()));
    all = all.substr(0, at);
  }
  each(all);
}

template <class Each>
void each_line(std::string_view all, bool keep_ends, bool is_bytes, Each&& each) noexcept {
  const char* const limit = all.data() + all.size();
  for (const char* begin = all.data(); begin < limit;) {
    const char* stop = begin;
    int length = 0;
    while (stop < limit && (length = end_length(stop, limit, is_bytes)) == 0) ++stop;
    each(std::string_view(begin, static_cast<std::size_t>(stop - begin) + static_cast<std::size_t>(keep_ends ? length : 0)));
    begin = stop + length;
  }
}

// Calls walk(each) twice and keeps what it gives to `each`, the last one first if `from_right`.
template <class Walk>
std::int32_t collected(const rel_text_room* room, bool from_right, rel_texts* made, Walk&& walk) noexcept {
  std::int64_t count = 0;
  walk([&count](std::string_view) { ++count; });
  auto* const texts = reinterpret_cast<rel_text*>(memory(room, count * static_cast<std::int64_t>(sizeof(rel_text)) + 8));
  if (texts == nullptr) return REL_TEXT_NO_MEMORY;
  const auto misplaced = reinterpret_cast<std::uintptr_t>(texts) % alignof(rel_text);  // memory for text isn't aligned
  auto* const first = reinterpret_cast<rel_text*>(reinterpret_cast<char*>(texts) + (misplaced == 0 ? 0 : alignof(rel_text) - misplaced));
  std::int64_t at = from_right ? count : 0;
  walk([&](std::string_view part) { first[from_right ? --at : at++] = given(part); });
  *made = {first, count};
  return REL_TEXT_OK;
}

}  // namespace

extern "C" {

std::int32_t rel_text_rsplit_space(const rel_text_room* room, const rel_text* text, std::int64_t most, std::int64_t is_bytes,
                                   rel_texts* made) {
  return collected(room, true, made, [&](auto each) { each_from_right_by_space(seen(text), most, is_bytes != 0, each); });
}

std::int32_t rel_text_rsplit(const rel_text_room* room, const rel_text* text, const rel_text* separator, std::int64_t most,
                             rel_texts* made) {
  if (separator->bytes == 0) return REL_TEXT_VALUE_ERROR;
  return collected(room, true, made, [&](auto each) { each_from_right(seen(text), seen(separator), most, each); });
}

std::int32_t rel_text_lines(const rel_text_room* room, const rel_text* text, std::int64_t keep_ends, std::int64_t is_bytes,
                            rel_texts* made) {
  return collected(room, false, made, [&](auto each) { each_line(seen(text), keep_ends != 0, is_bytes != 0, each); });
}

}  // extern "C"
