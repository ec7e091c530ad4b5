/* Text functions with the semantics of CPython's str and bytes, over bytes in UTF-8; callable from compiled code by these names.
 *
 * Texts are valid UTF-8 (rel_text_is_valid) unless a function is told that they are bytes: `is_bytes`. A function that can fail returns a rel_text_status and puts what it made into its last argument. Nothing is kept,
 * no locale is asked, no C++ exception leaves. Thread-safe.
 */
#ifndef RAYELASTIC_TEXT_H
#define RAYELASTIC_TEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A str (UTF-8) or a bytes, not owned; what compiled code has in its registers (compile/lowering/views.py). */
typedef struct rel_text {
  const char* data;
  int64_t bytes;
} rel_text;

enum rel_text_status {
  REL_TEXT_OK = 0,
  REL_TEXT_REFUSED = 1,    /* CPython has an answer that can't be had here, an int beyond 64 bits for example */
  REL_TEXT_NO_MEMORY = 2,  /* from here on: CPython raises MemoryError, */
  REL_TEXT_VALUE_ERROR = 3 /* ValueError */
};

/* int(str) and float(str), or of bytes: white space around, sign, underscores between digits; in a str decimal digits of every script;
 * for float inf, infinity, nan, and values out of range become inf or 0. */
int32_t rel_text_to_int(const rel_text* text, int64_t is_bytes, int64_t* value);
int32_t rel_text_to_float(const rel_text* text, int64_t is_bytes, double* value);

/* 1 if the bytes are UTF-8 as CPython's strict decoder takes it. */
int rel_text_is_valid(const char* text, int64_t bytes);

/* What bytes.decode("utf-8", "replace") makes, as UTF-8 into `out`, of which 3 * bytes suffice; returns the bytes written. */
int64_t rel_text_repair(const char* text, int64_t bytes, char* out);

#ifdef __cplusplus
}
#endif

#endif
