/* Text functions with the semantics of CPython's str and bytes, over bytes in UTF-8; callable from compiled code by these names.
 *
 * Texts are valid UTF-8 (rel_text_is_valid) unless a function is told that they are bytes: `is_bytes`. Indices count code points of a
 * str, bytes of a bytes. A function that can fail returns a rel_text_status and puts what it made into its last argument: a text made
 * lies in memory of the caller's room, or is a part of a text that was given. Nothing is kept, no locale is asked, no C++ exception
 * leaves. Thread-safe.
 */
#ifndef RAYELASTIC_TEXT_H
#define RAYELASTIC_TEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rel_context;

/* A str (UTF-8) or a bytes, not owned; what compiled code has in its registers (compile/lowering/views.py). */
typedef struct rel_text {
  const char* data;
  int64_t bytes;
} rel_text;

/* Texts in a row: what rsplit() gives. */
typedef struct rel_texts {
  const rel_text* data;
  int64_t count;
} rel_texts;

/* Where the bytes of what is made come from: rel_allocate and its context, in the engine. */
typedef struct rel_text_room {
  void* (*allocate)(struct rel_context* context, int64_t bytes);
  struct rel_context* context;
} rel_text_room;

enum rel_text_status {
  REL_TEXT_OK = 0,
  REL_TEXT_REFUSED = 1,        /* CPython has an answer that can't be had here, an int beyond 64 bits for example */
  REL_TEXT_NO_MEMORY = 2,      /* from here on: CPython raises MemoryError, */
  REL_TEXT_VALUE_ERROR = 3,    /* ValueError, */
  REL_TEXT_TYPE_ERROR = 4,     /* TypeError, */
  REL_TEXT_DECODE_ERROR = 5,   /* UnicodeDecodeError, */
  REL_TEXT_ENCODE_ERROR = 6,   /* UnicodeEncodeError, */
  REL_TEXT_OVERFLOW_ERROR = 7, /* OverflowError */
};

/* --- numbers --- */

/* int(str) and float(str), or of bytes: white space around, sign, underscores between digits; in a str decimal digits of every script;
 * for float inf, infinity, nan, and values out of range become inf or 0. `base` is 0 or 2 to 36; TypeError is not raised. */
int32_t rel_text_to_int(const rel_text* text, int64_t base, int64_t is_bytes, int64_t* value);
int32_t rel_text_to_float(const rel_text* text, int64_t is_bytes, double* value);

/* hex(), oct() and bin() for `base` 16, 8 and 2. */
int32_t rel_text_of_int(const rel_text_room* room, int64_t value, int64_t base, rel_text* made);

/* chr(); a surrogate is refused. */
int32_t rel_text_of_point(const rel_text_room* room, int64_t point, rel_text* made);

/* int.from_bytes(). */
int32_t rel_text_bytes_to_int(const rel_text* text, int64_t is_signed, int64_t is_little, int64_t* value);

/* --- case and classes; tables are made of the running Python's str (compile/lowering/unicode_tables.py) --- */

enum rel_text_case { REL_CASE_LOWER, REL_CASE_UPPER, REL_CASE_FOLD, REL_CASE_SWAP, REL_CASE_CAPITALIZE, REL_CASE_TITLE };

/* str.lower() and the like. `mapping` has what the code points beyond ASCII become, `initial` the same for those that begin a word (title)
 * or the text (capitalize); rel_text_mapping in a row, sorted. `cased` and `ignorable` (rel_text_class) say which capital sigma is final. */
typedef struct rel_text_mapping {
  uint32_t point;
  uint32_t bytes;
  char utf8[8];
} rel_text_mapping;

int32_t rel_text_change_case(const rel_text_room* room, const rel_text* text, int64_t how, int64_t is_bytes, const rel_text* mapping,
                             const rel_text* initial, const rel_text* cased, const rel_text* ignorable, rel_text* made);

/* str.translate(): `table` is rel_text_mapping in a row, sorted. */
int32_t rel_text_translate(const rel_text_room* room, const rel_text* text, const rel_text* table, rel_text* made);

/* A class of code points: 16 bytes with a bit for each ASCII character, then sorted borders (uint32_t): a code point beyond ASCII is in the
 * class if an odd number of borders lies at or below it. Whether the first character is in one class and all others in another. */
int32_t rel_text_is_of(const rel_text* text, int64_t when_empty, int64_t is_bytes, const rel_text* first, const rel_text* rest,
                       int64_t* yes);

/* isupper(), islower() and istitle() for `which` 0, 1 and 2. */
int32_t rel_text_is_cased(const rel_text* text, int64_t which, int64_t is_bytes, const rel_text* upper, const rel_text* lower,
                          const rel_text* title, int64_t* yes);

/* --- places --- */

/* find() and rfind(), -1 if there is none, or with has_to index() and rindex(); count(); startswith() and endswith() with one of several
 * parts. All look at text[start:end]. */
int32_t rel_text_find(const rel_text* text, const rel_text* part, int64_t start, int64_t end, int64_t from_right, int64_t has_to,
                      int64_t is_bytes, int64_t* index);
int32_t rel_text_count(const rel_text* text, const rel_text* part, int64_t start, int64_t end, int64_t is_bytes, int64_t* times);
int32_t rel_text_starts(const rel_text* text, const rel_text* parts, int64_t count, int64_t start, int64_t end, int64_t at_end,
                        int64_t is_bytes, int64_t* yes);

/* The offset in bytes of the last place of a part, -1 if there is none. */
int32_t rel_text_last(const rel_text* text, const rel_text* part, int64_t* offset);

/* --- texts made of texts --- */

/* text[start:stop:step], with the bounds that PySlice_Unpack gives for None. */
int32_t rel_text_slice(const rel_text_room* room, const rel_text* text, int64_t start, int64_t stop, int64_t step, int64_t is_bytes,
                       rel_text* made);

/* replace(); all occurrences if count is negative. */
int32_t rel_text_replace(const rel_text_room* room, const rel_text* text, const rel_text* old, const rel_text* by, int64_t count,
                         int64_t is_bytes, rel_text* made);

/* ljust(), rjust() and center() for `side` '<', '>' and '^'. */
int32_t rel_text_pad(const rel_text_room* room, const rel_text* text, int64_t width, const rel_text* fill, int64_t side, int64_t is_bytes,
                     rel_text* made);
int32_t rel_text_zfill(const rel_text_room* room, const rel_text* text, int64_t width, int64_t is_bytes, rel_text* made);
int32_t rel_text_expand_tabs(const rel_text_room* room, const rel_text* text, int64_t width, int64_t is_bytes, rel_text* made);

/* rsplit() at white space and at a separator, splitlines(). */
int32_t rel_text_rsplit_space(const rel_text_room* room, const rel_text* text, int64_t most, int64_t is_bytes, rel_texts* made);
int32_t rel_text_rsplit(const rel_text_room* room, const rel_text* text, const rel_text* separator, int64_t most, rel_texts* made);
int32_t rel_text_lines(const rel_text_room* room, const rel_text* text, int64_t keep_ends, int64_t is_bytes, rel_texts* made);

/* --- bytes and str --- */

enum rel_text_codec { REL_CODEC_UTF8, REL_CODEC_ASCII, REL_CODEC_LATIN1 };
enum rel_text_on_error { REL_ON_ERROR_STRICT, REL_ON_ERROR_IGNORE, REL_ON_ERROR_REPLACE };

/* bytes.decode() and str.encode(). */
int32_t rel_text_decode(const rel_text_room* room, const rel_text* text, int64_t codec, int64_t on_error, rel_text* made);
int32_t rel_text_encode(const rel_text_room* room, const rel_text* text, int64_t codec, int64_t on_error, rel_text* made);

/* bytes.hex(). */
int32_t rel_text_hex(const rel_text_room* room, const rel_text* text, rel_text* made);

/* 1 if the bytes are UTF-8 as CPython's strict decoder takes it. */
int rel_text_is_valid(const char* text, int64_t bytes);

/* What bytes.decode("utf-8", "replace") makes, as UTF-8 into `out`, of which 3 * bytes suffice; returns the bytes written. */
int64_t rel_text_repair(const char* text, int64_t bytes, char* out);

#ifdef __cplusplus
}
#endif

#endif
