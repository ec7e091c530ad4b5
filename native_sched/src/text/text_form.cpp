// Texts made of one text: slices, replace, padding, tabs; CPython's unicodeobject.c, stringlib/transmogrify.h and sliceobject.c.
#include <limits>

#include "text/text_service.hpp"

using namespace rayelastic::text;

namespace {

std::size_t find(std::string_view text, std::string_view part, std::size_t from) noexcept {
#ifdef __GLIBC__
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
#else
  return text.find(part, from);
#endif
}

// `by` in front of the first characters and behind the last, `times` in all.
char* put_between(std::string_view text, std::string_view by, std::int64_t times, bool is_bytes, char* to) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    if (times-- > 0) to = put(by, to);
    const auto count = static_cast<std::size_t>(is_bytes ? 1 : width(text[at]));
    to = put(text.substr(at, count), to);
    at += count;
  }
  return times > 0 ? put(by, to) : to;
}

char* put_times(std::string_view text, std::int64_t times, char* to) noexcept {
  if (text.size() == 1) {
    std::memset(to, text[0], static_cast<std::size_t>(times));
    return to + times;
  }
  for (; times > 0; --times) to = put(text, to);
  return to;
}

}  // namespace

extern "C" {

std::int32_t rel_text_slice(const rel_text_room* room, const rel_text* text, std::int64_t start, std::int64_t stop, std::int64_t step,
                            std::int64_t is_bytes, rel_text* made) {
  if (step == 0) return REL_TEXT_VALUE_ERROR;
  if (step == std::numeric_limits<std::int64_t>::min()) ++step;  // PySlice_Unpack
  const bool by_bytes = is_bytes != 0 || is_ascii(seen(text));
  const std::int64_t all = length(seen(text), by_bytes);
  const auto clipped = [all, step](std::int64_t index) {  // PySlice_AdjustIndices
    if (index < 0) return index + all < 0 ? (step < 0 ? -1 : 0) : index + all;
    return index >= all ? (step < 0 ? all - 1 : all) : index;
  };
  start = clipped(start), stop = clipped(stop);
  const std::int64_t span = step > 0 ? stop - start : start - stop;
  const std::int64_t stride = step > 0 ? step : -step;
  const std::int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
  if (count == 0) {
    *made = {text->data, 0};
    return REL_TEXT_OK;
  }
  char* const out = memory(room, by_bytes ? count : std::min(text->bytes, 4 * count));
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  char* to = out;
  if (by_bytes) {
    for (std::int64_t i = 0; i < count; ++i) *to++ = text->data[start + i * step];
  } else {
    const char* at = text->data + offset(seen(text), start, false);
    for (std::int64_t i = 0; i < count; ++i) {
      to = put({at, static_cast<std::size_t>(width(*at))}, to);
      if (i + 1 == count) break;
      for (std::int64_t moved = 0; moved < stride; ++moved) {
        if (step > 0) {
          at += width(*at);
        } else {
          do --at;
          while (is_continuation(*at));
        }
      }
    }
  }
  *made = {out, to - out};
  return REL_TEXT_OK;
}

std::int32_t rel_text_replace(const rel_text_room* room, const rel_text* text, const rel_text* old, const rel_text* by, std::int64_t count,
                              std::int64_t is_bytes, rel_text* made) {
  const std::string_view all = seen(text), wanted = seen(old), put_in = seen(by);
  const std::int64_t most = count < 0 ? std::numeric_limits<std::int64_t>::max() : count;
  std::int64_t times = 0;
  if (wanted.empty()) {
    times = std::min(most, length(all, is_bytes != 0) + 1);
  } else {
    for (std::size_t at = 0; times < most && (at = find(all, wanted, at)) != std::string_view::npos; at += wanted.size()) ++times;
  }
  *made = *text;
  if (times == 0) return REL_TEXT_OK;
  if (times > kMostBytes / std::max<std::int64_t>(by->bytes, 1)) return REL_TEXT_NO_MEMORY;
  const std::int64_t size = text->bytes + times * (by->bytes - old->bytes);
  char* const out = memory(room, size);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  *made = {out, size};
  if (wanted.empty()) {
    put_between(all, put_in, times, is_bytes != 0, out);
    return REL_TEXT_OK;
  }
  char* to = out;
  std::size_t done = 0;
  for (; times > 0; --times) {
    const std::size_t at = find(all, wanted, done);
    to = put(all.substr(done, at - done), to);
    to = put(put_in, to);
    done = at + wanted.size();
  }
  put(all.substr(done), to);
  return REL_TEXT_OK;
}

std::int32_t rel_text_pad(const rel_text_room* room, const rel_text* text, std::int64_t width, const rel_text* fill, std::int64_t side,
                          std::int64_t is_bytes, rel_text* made) {
  if (length(seen(fill), is_bytes != 0) != 1) return REL_TEXT_TYPE_ERROR;
  const std::int64_t missing = width - length(seen(text), is_bytes != 0);
  *made = *text;
  if (missing <= 0) return REL_TEXT_OK;
  if (missing > kMostBytes) return REL_TEXT_NO_MEMORY;
  const std::int64_t before = side == '>' ? missing : side == '^' ? missing / 2 + (missing & width & 1) : 0;
  const std::int64_t size = text->bytes + missing * fill->bytes;
  char* const out = memory(room, size);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  put_times(seen(fill), missing - before, put(seen(text), put_times(seen(fill), before, out)));
  *made = {out, size};
  return REL_TEXT_OK;
}

std::int32_t rel_text_zfill(const rel_text_room* room, const rel_text* text, std::int64_t width, std::int64_t is_bytes, rel_text* made) {
  const std::int64_t missing = width - length(seen(text), is_bytes != 0);
  *made = *text;
  if (missing <= 0) return REL_TEXT_OK;
  char* const out = missing > kMostBytes ? nullptr : memory(room, text->bytes + missing);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  const std::string_view all = seen(text);
  const std::size_t signs = !all.empty() && (all[0] == '-' || all[0] == '+') ? 1 : 0;
  put(all.substr(signs), put_times("0", missing, put(all.substr(0, signs), out)));
  *made = {out, text->bytes + missing};
  return REL_TEXT_OK;
}

std::int32_t rel_text_expand_tabs(const rel_text_room* room, const rel_text* text, std::int64_t width, std::int64_t is_bytes,
                                  rel_text* made) {
  if (width != static_cast<std::int32_t>(width)) return REL_TEXT_OVERFLOW_ERROR;
  const std::string_view all = seen(text);
  *made = *text;
  if (all.find('\t') == std::string_view::npos) return REL_TEXT_OK;
  char* out = nullptr;
  std::int64_t size = 0;
  for (int pass = 0; pass < 2; ++pass) {  // counts, then writes
    std::int64_t column = 0, to = 0;
    for (const char byte : all) {
      if (byte == '\t') {
        const std::int64_t blanks = width > 0 ? width - column % width : 0;
        if (out != nullptr) std::memset(out + to, ' ', static_cast<std::size_t>(blanks));
        to += blanks, column += blanks;
        continue;
      }
      if (out != nullptr) out[to] = byte;
      ++to;
      column = byte == '\n' || byte == '\r' ? 0 : column + (is_bytes == 0 && is_continuation(byte) ? 0 : 1);
    }
    if (out == nullptr && (out = memory(room, to)) == nullptr) return REL_TEXT_NO_MEMORY;
    size = to;
  }
  *made = {out, size};
  return REL_TEXT_OK;
}

}  // extern "C"
