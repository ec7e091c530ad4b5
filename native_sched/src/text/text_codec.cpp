// bytes.decode(), str.encode() and bytes.hex(): CPython's codecs for UTF-8, ASCII and Latin-1 with their error handlers.
#include "text/text_service.hpp"

using namespace rayelastic::text;

namespace {

// UTF-8 that isn't ASCII alone: rel_text_repair puts U+FFFD in place of each ill-formed part; without these it is "ignore".
std::int32_t decode_utf8(const rel_text_room* room, const rel_text* text, std::int64_t on_error, rel_text* made) noexcept {
  *made = *text;
  if (rel_text_is_valid(text->data, text->bytes) != 0) return REL_TEXT_OK;
  if (on_error == REL_ON_ERROR_STRICT) return REL_TEXT_DECODE_ERROR;
  char* const out = memory(room, 3 * text->bytes);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  if (on_error == REL_ON_ERROR_REPLACE) {
    *made = {out, rel_text_repair(text->data, text->bytes, out)};
    return REL_TEXT_OK;
  }
  char* to = out;
  for (std::int64_t at = 0; at < text->bytes;) {
    const std::int64_t size = std::min(width(text->data[at]), text->bytes - at);
    if (static_cast<unsigned char>(text->data[at]) >= 0x80 && rel_text_is_valid(text->data + at, size) == 0) {
      ++at;  // what is left of an ill-formed part is ill-formed, too
      continue;
    }
    to = put({text->data + at, static_cast<std::size_t>(size)}, to);
    at += size;
  }
  *made = {out, to - out};
  return REL_TEXT_OK;
}

}  // namespace

extern "C" {

std::int32_t rel_text_decode(const rel_text_room* room, const rel_text* text, std::int64_t codec, std::int64_t on_error, rel_text* made) {
  *made = *text;
  if (is_ascii(seen(text))) return REL_TEXT_OK;
  if (codec == REL_CODEC_UTF8) return decode_utf8(room, text, on_error, made);
  if (codec == REL_CODEC_ASCII && on_error == REL_ON_ERROR_STRICT) return REL_TEXT_DECODE_ERROR;
  char* const out = memory(room, 3 * text->bytes);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  char* to = out;
  for (const char one : seen(text)) {
    const auto byte = static_cast<unsigned char>(one);
    if (byte < 0x80 || codec == REL_CODEC_LATIN1) {
      to = encode(byte, to);
    } else if (on_error == REL_ON_ERROR_REPLACE) {
      to = encode(0xfffd, to);
    }
  }
  *made = {out, to - out};
  return REL_TEXT_OK;
}

std::int32_t rel_text_encode(const rel_text_room* room, const rel_text* text, std::int64_t codec, std::int64_t on_error, rel_text* made) {
  *made = *text;
  if (codec == REL_CODEC_UTF8 || is_ascii(seen(text))) return REL_TEXT_OK;
  char* const out = memory(room, text->bytes);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  char* to = out;
  const std::uint32_t limit = codec == REL_CODEC_LATIN1 ? 0x100 : 0x80;
  for (const char* at = text->data; at < text->data + text->bytes;) {
    const std::uint32_t point = decode(at);
    if (point < limit) {
      *to++ = static_cast<char>(point);
    } else if (on_error == REL_ON_ERROR_STRICT) {
      return REL_TEXT_ENCODE_ERROR;
    } else if (on_error == REL_ON_ERROR_REPLACE) {
      *to++ = '?';
    }
  }
  *made = {out, to - out};
  return REL_TEXT_OK;
}

std::int32_t rel_text_hex(const rel_text_room* room, const rel_text* text, rel_text* made) {
  char* const out = memory(room, 2 * text->bytes);
  if (out == nullptr) return REL_TEXT_NO_MEMORY;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::int64_t i = 0; i < text->bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text->data[i]);
    out[2 * i] = kDigits[byte >> 4];
    out[2 * i + 1] = kDigits[byte & 15];
  }
  *made = {out, 2 * text->bytes};
  return REL_TEXT_OK;
}

}  // extern "C"
