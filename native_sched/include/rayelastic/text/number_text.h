/* Floats as CPython writes and rounds them; callable from compiled code by these names. No locale is asked. Thread-safe. */
#ifndef RAYELASTIC_NUMBER_TEXT_H
#define RAYELASTIC_NUMBER_TEXT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REL_FLOAT_TEXT_BYTES 512 /* room that any text below needs, the precision being at most REL_FLOAT_PRECISION */
#define REL_FLOAT_PRECISION 100

/* repr(value) for kind 'r'; format(value, f".{precision}{kind}") for the kinds f, e and g. Into out[0..result). */
int64_t rel_text_of_float(double value, int32_t kind, int64_t precision, char* out);

/* round(value, digits). */
double rel_rounded(double value, int64_t digits);

#ifdef __cplusplus
}
#endif

#endif
