// Where a text is in another, as CPython's unicodeobject.c and bytes_methods.c say. Texts are found by their bytes: the UTF-8 of whole
// characters is found only where a character begins.
#include "text/text_service.hpp"

using namespace rayelastic::text;

namespace {

struct Part {
  std::string_view text;  // text[start:end]
  std::int64_t before;    // characters in front of it
  bool is_beyond;         // start lies behind the end of the text, or of the part: not even an empty text is there
};

// ADJUST_INDICES
Part part_of(std::string_view text, std::int64_t start, std::int64_t end, bool is_bytes) noexcept {
  const auto size = static_cast<std::int64_t>(text.size());
  if (start == 0 && end >= size) return {text, 0, false};
  if (start < 0 || end < size || start > size) {
    const std::int64_t all = length(text, is_bytes);
    start = start < 0 ? std::max<std::int64_t>(start + all, 0) : start;
    end = end < 0 ? std::max<std::int64_t>(end + all, 0) : std::min(end, all);
    if (start > end) return {{}, 0, true};
  }
  const std::int64_t from = offset(text, start, is_bytes);
  const std::string_view rest = text.substr(static_cast<std::size_t>(from));
  if (from == size && length(text, is_bytes) < start) return {{}, 0, true};
  return {end >= size ? rest : rest.substr(0, static_cast<std::size_t>(offset(rest, end - start, is_bytes))), start, false};
}

std::size_t find(std::string_view text, std::string_view part, std::size_t from = 0) noexcept {
#ifdef __GLIBC__
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
#else
  return text.find(part, from);
#endif
}

}  // namespace

extern "C" {

std::int32_t rel_text_find(const rel_text* text, const rel_text* part, std::int64_t start, std::int64_t end, std::int64_t from_right,
                           std::int64_t has_to, std::int64_t is_bytes, std::int64_t* index) {
  const Part within = part_of(seen(text), start, end, is_bytes != 0);
  *index = -1;
  if (within.is_beyond) return has_to != 0 ? REL_TEXT_VALUE_ERROR : REL_TEXT_OK;
  const std::size_t at = from_right != 0 ? within.text.rfind(seen(part)) : find(within.text, seen(part));
  if (at == std::string_view::npos) return has_to != 0 ? REL_TEXT_VALUE_ERROR : REL_TEXT_OK;
  *index = within.before + length(within.text.substr(0, at), is_bytes != 0);
  return REL_TEXT_OK;
}

std::int32_t rel_text_last(const rel_text* text, const rel_text* part, std::int64_t* offset) {
  const std::size_t at = seen(text).rfind(seen(part));
  *offset = at == std::string_view::npos ? -1 : static_cast<std::int64_t>(at);
  return REL_TEXT_OK;
}

std::int32_t rel_text_count(const rel_text* text, const rel_text* part, std::int64_t start, std::int64_t end, std::int64_t is_bytes,
                            std::int64_t* times) {
  const Part within = part_of(seen(text), start, end, is_bytes != 0);
  *times = 0;
  if (within.is_beyond) return REL_TEXT_OK;
  if (part->bytes == 0) {
    *times = length(within.text, is_bytes != 0) + 1;
    return REL_TEXT_OK;
  }
  for (std::size_t at = 0; (at = find(within.text, seen(part), at)) != std::string_view::npos; at += seen(part).size()) ++*times;
  return REL_TEXT_OK;
}

std::int32_t rel_text_starts(const rel_text* text, const rel_text* parts, std::int64_t count, std::int64_t start, std::int64_t end,
                             std::int64_t at_end, std::int64_t is_bytes, std::int64_t* yes) {
  const Part within = part_of(seen(text), start, end, is_bytes != 0);
  *yes = 0;
  for (std::int64_t i = 0; i < count && *yes == 0 && !within.is_beyond; ++i) {
    *yes = (at_end != 0 ? within.text.ends_with(seen(parts + i)) : within.text.starts_with(seen(parts + i))) ? 1 : 0;
  }
  return REL_TEXT_OK;
}

}  // extern "C"
