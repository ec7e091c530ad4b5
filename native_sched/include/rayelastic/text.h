/* Text functions with the semantics of CPython's str, over UTF-8 bytes; callable from compiled code by these names.
 *
 * Texts are (pointer, bytes) and valid UTF-8 (see rel_text_is_valid). Offsets are in bytes, indexes in code points, as each
 * function says. Nothing is kept, no locale is asked. Thread-safe.
 */
#ifndef RAYELASTIC_TEXT_H
#define RAYELASTIC_TEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* str.split(): the byte offset of the next word at or after byte offset `from`, and in *end where it ends; -1 if there is none. */
int64_t rel_text_next_word(const char* text, int64_t bytes, int64_t from, int64_t* end);

/* str.strip(): the byte offset of the first code point that isn't white space, and in *end the end of the last; equal if all is white space. */
int64_t rel_text_strip(const char* text, int64_t bytes, int64_t* end);

/* len(str): the number of code points. */
int64_t rel_text_length(const char* text, int64_t bytes);

/* The byte offset of code point number `index` (>= 0); `bytes` if there are no more than index. */
int64_t rel_text_offset(const char* text, int64_t bytes, int64_t index);

/* str.find(): the code point index of the first place of `part`, -1 if there is none. */
int64_t rel_text_find(const char* text, int64_t bytes, const char* part, int64_t part_bytes);

/* The byte offset of the first place of `part` at or after byte offset `from`, -1 if there is none; for split(separator) and replace. */
int64_t rel_text_find_bytes(const char* text, int64_t bytes, const char* part, int64_t part_bytes, int64_t from);

/* `part in text`: 1 or 0. */
int rel_text_contains(const char* text, int64_t bytes, const char* part, int64_t part_bytes);

/* Comparison by code points, as str's < and ==: negative, 0 or positive. */
int rel_text_compare(const char* a, int64_t a_bytes, const char* b, int64_t b_bytes);

/* str.lower() and str.upper() of ASCII text into out[0..bytes). 0, or 1 if the text isn't ASCII: then ask Python, `out` is undefined. */
int rel_text_lower(const char* text, int64_t bytes, char* out);
int rel_text_upper(const char* text, int64_t bytes, char* out);

enum rel_text_number {
  REL_NUMBER_OK = 0,
  REL_NUMBER_INVALID = 1, /* CPython raises ValueError */
  REL_NUMBER_RANGE = 2    /* an int for CPython (or too many digits even for it), but not an int64 */
};

/* int(str) and float(str), *value being set if the result is REL_NUMBER_OK: white space around, sign, underscores between digits, decimal
 * digits of every script; for float inf, infinity, nan, and values out of range become inf or 0 as in CPython. */
int rel_text_to_int(const char* text, int64_t bytes, int64_t* value);
int rel_text_to_float(const char* text, int64_t bytes, double* value);

/* 1 if the bytes are UTF-8 as CPython's strict decoder takes it. */
int rel_text_is_valid(const char* text, int64_t bytes);

/* What bytes.decode("utf-8", "replace") makes, as UTF-8 into `out`, of which 3 * bytes suffice; returns the bytes written. */
int64_t rel_text_repair(const char* text, int64_t bytes, char* out);

#ifdef __cplusplus
}
#endif

#endif
