/* Regular expressions for compiled code, by PCRE2 (libpcre2-8, which every Debian has), looked for when first asked: nothing needs it
 * to build. Patterns are UTF-8; what of Python's `re` means the same there is the caller's matter. */
#ifndef RAYELASTIC_PATTERN_H
#define RAYELASTIC_PATTERN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rel_pattern_mode {
  REL_PATTERN_SEARCH = 0,
  REL_PATTERN_MATCH = 1u << 0,  /* at `start` and nowhere else */
  REL_PATTERN_FULL = 1u << 1,   /* up to the end of the text as well */
  REL_PATTERN_ADVANCE = 1u << 2 /* not the empty text at `start`: where the match before was empty */
};

/* The pattern compiled, the same one for the same text, kept for the life of the process; NULL: no library, or it refuses the pattern.
 * Thread-safe, and meant to be asked once and kept. */
const void* rel_pattern(const char* pattern, int64_t bytes);

/* The first match in text[start..bytes): 1 and the byte offsets of group i in spans[2 * i] and spans[2 * i + 1] (-1: it took no part),
 * for `groups` groups, the whole match being group 0; 0: no match; -1: given up, because it takes too long or too much memory. */
int64_t rel_pattern_find(const void* pattern, const char* text, int64_t bytes, int64_t start, int32_t mode, int64_t groups, int64_t* spans);

/* Pattern.sub() of Python's `re`: the first `count` matches (0: all, negative: none) by what `replacement` says. That is pieces, each
 * of two int32: the number of a group, or -1 for a literal; the bytes of the literal, which follow. Returns the bytes in *out, which is
 * this thread's until it asks again; -1: given up. */
int64_t rel_pattern_sub(const void* pattern, const char* text, int64_t bytes, const char* replacement, int64_t replacement_bytes,
                        int64_t count, const char** out);

#ifdef __cplusplus
}
#endif

#endif
