// Upper and lower case, title case, classes of characters and translate(), as CPython's unicodeobject.c has them. Which characters
// change into what is told by the caller, out of the running Python's tables; ASCII is done by arithmetic.
#include "text/text_service.hpp"

using namespace rayelastic::text;

namespace {

constexpr std::uint32_t kCapitalSigma = 0x3a3, kFinalSigma = 0x3c2;

bool is_upper(unsigned char byte) noexcept { return byte >= 'A' && byte <= 'Z'; }
bool is_lower(unsigned char byte) noexcept { return byte >= 'a' && byte <= 'z'; }

// rel_text_mapping in a row; the bytes may lie anywhere.
const rel_text_mapping* mapped(const rel_text* table, std::uint32_t point) noexcept {
  const auto* first = reinterpret_cast<const rel_text_mapping*>(table->data);
  const auto* limit = first + static_cast<std::size_t>(table->bytes) / sizeof(rel_text_mapping);
  const auto* found =
      std::lower_bound(first, limit, point, [](const rel_text_mapping& one, std::uint32_t wanted) { return one.point < wanted; });
  return found != limit && found->point == point ? found : nullptr;
}

constexpr std::int64_t kAsciiBits = 16;  // bytes

bool is_in(const rel_text* of, std::uint32_t point) noexcept {
  if (point < 0x80) return (static_cast<unsigned char>(of->data[point >> 3]) >> (point & 7) & 1) != 0;
  const auto* first = reinterpret_cast<const std::uint32_t*>(of->data + kAsciiBits);
  const auto* limit = first + (of->bytes - kAsciiBits) / static_cast<std::int64_t>(sizeof(std::uint32_t));
  return ((std::upper_bound(first, limit, point) - first) & 1) != 0;
}

struct Cases {
  const rel_text* mapping;
  const rel_text* initial;
  const rel_text* cased;
  const rel_text* ignorable;
};

// Final_Sigma of Unicode, section 3.13: handle_capital_sigma. `at` is the sigma's place.
bool is_final_sigma(std::string_view text, const char* at, const Cases& cases) noexcept {
  const char* const begin = text.data();
  const char* const limit = begin + text.size();
  bool follows = false;
  for (const char* before = at; before > begin;) {
    const std::uint32_t point = decode_before(before);
    if (is_in(cases.ignorable, point)) continue;
    follows = is_in(cases.cased, point);
    break;
  }
  if (!follows) return false;
  for (const char* after = at + width(*at); after < limit;) {
    const std::uint32_t point = decode(after);
    if (!is_in(cases.ignorable, point)) return !is_in(cases.cased, point);
  }
  return true;
}

// An ASCII character; `begins` says whether it is the first one of a word, or of the text.
unsigned char ascii_case(unsigned char byte, std::int64_t how, bool begins) noexcept {
  const bool up = how == REL_CASE_UPPER || how == REL_CASE_SWAP || (begins && how >= REL_CASE_CAPITALIZE);
  const bool down = how != REL_CASE_UPPER && !(begins && how >= REL_CASE_CAPITALIZE);
  if (up && is_lower(byte)) return byte ^ 0x20;
  return down && is_upper(byte) ? byte ^ 0x20 : byte;
}

// Text of ASCII, or bytes.
void narrow(std::string_view text, std::int64_t how, char* out) noexcept {
  const std::size_t size = text.size();
  if (how == REL_CASE_LOWER || how == REL_CASE_FOLD) {  // loops without branches, for the vectoriser
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]);
  } else if (how == REL_CASE_UPPER) {
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]);
  } else {
    bool begins = true;
    for (std::size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      out[i] = static_cast<char>(ascii_case(byte, how, begins));
      begins = how == REL_CASE_TITLE && !is_upper(byte) && !is_lower(byte);
    }
  }
}

char* wide(std::string_view text, std::int64_t how, const Cases& cases, char* to) noexcept {
  const char* const limit = text.data() + text.size();
  bool begins = true;
  for (const char* at = text.data(); at < limit;) {
    const char* const here = at;
    const std::uint32_t point = decode(at);
    const bool is_initial = begins && how >= REL_CASE_CAPITALIZE;
    if (point < 0x80) {
      *to++ = static_cast<char>(ascii_case(static_cast<unsigned char>(point), how, begins));
    } else if (point == kCapitalSigma && !is_initial && how != REL_CASE_UPPER && how != REL_CASE_FOLD &&
               is_final_sigma(text, here, cases)) {
      to = encode(kFinalSigma, to);
    } else if (const rel_text_mapping* found = mapped(is_initial ? cases.initial : cases.mapping, point)) {
      to = put({found->utf8, found->bytes}, to);
    } else {
      to = put({here, static_cast<std::size_t>(at - here)}, to);
    }
    begins = how == REL_CASE_TITLE && !is_in(cases.cased, point);
  }
  return to;
}

}  // namespace

extern "C" {

std::int32_t rel_text_change_case(const rel_text_room* room, const rel_text* text, std::int64_t how, std::int64_t is_bytes,
                                  const rel_text* mapping, const rel_text* initial, const rel_text* cased, const rel_text* ignorable,
                                  rel_text* made) {
  const std::string_view all = seen(text);
  const bool is_narrow = is_bytes != 0 || is_ascii(all);
  char* const out = memory(room, is_narrow ? text->bytes : 3 * text->bytes);  // 2 bytes become 6 at most
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  *made = {out, text->bytes};
  if (is_narrow) {
    narrow(all, how, out);
  } else {
    made->bytes = wide(all, how, {mapping, initial, cased, ignorable}, out) - out;
  }
  return REL_TEXT_OK;
}

std::int32_t rel_text_translate(const rel_text_room* room, const rel_text* text, const rel_text* table, rel_text* made) {
  const std::string_view all = seen(text);
  const char* const limit = all.data() + all.size();
  std::int64_t size = 0;
  for (const char* at = all.data(); at < limit;) {
    const char* const here = at;
    const rel_text_mapping* found = mapped(table, decode(at));
    size += found == nullptr ? at - here : found->bytes;
  }
  char* const out = memory(room, size);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  char* to = out;
  for (const char* at = all.data(); at < limit;) {
    const char* const here = at;
    const rel_text_mapping* found = mapped(table, decode(at));
    to = found == nullptr ? put({here, static_cast<std::size_t>(at - here)}, to) : put({found->utf8, found->bytes}, to);
  }
  *made = {out, size};
  return REL_TEXT_OK;
}

std::int32_t rel_text_is_of(const rel_text* text, std::int64_t when_empty, std::int64_t is_bytes, const rel_text* first,
                            const rel_text* rest, std::int64_t* yes) {
  const char* const limit = text->data + text->bytes;
  *yes = text->bytes > 0 ? 1 : when_empty;
  const rel_text* wanted = first;
  for (const char* at = text->data; at < limit; wanted = rest) {
    const std::uint32_t point = is_bytes != 0 ? static_cast<unsigned char>(*at++) : decode(at);
    if (!is_in(wanted, point)) {
      *yes = 0;
      break;
    }
  }
  return REL_TEXT_OK;
}

std::int32_t rel_text_is_cased(const rel_text* text, std::int64_t which, std::int64_t is_bytes, const rel_text* upper,
                               const rel_text* lower, const rel_text* title, std::int64_t* yes) {
  const char* const limit = text->data + text->bytes;
  bool found = false, follows = false;  // a character with case; one directly in front
  *yes = 0;
  for (const char* at = text->data; at < limit;) {
    const std::uint32_t point = is_bytes != 0 ? static_cast<unsigned char>(*at++) : decode(at);
    const bool up = is_in(upper, point), down = is_in(lower, point), titled = is_in(title, point);
    if (which == 2) {
      if ((up || titled) ? follows : (down && !follows)) return REL_TEXT_OK;
      follows = up || titled || down;
      found = found || follows;
    } else {
      if (titled || (which == 0 ? down : up)) return REL_TEXT_OK;
      found = found || (which == 0 ? up : down);
    }
  }
  *yes = found ? 1 : 0;
  return REL_TEXT_OK;
}

}  // extern "C"
