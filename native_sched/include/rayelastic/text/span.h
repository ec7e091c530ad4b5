/* Durations times and divided by numbers, as CPython's timedelta has them; callable from compiled code by these names. */
#ifndef RAYELASTIC_SPAN_H
#define RAYELASTIC_SPAN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each puts the nearest whole number, of two the even one, into *result and gives 1; gives 0 where there is none of 64 bits (or it
 * needs more than 127 bits on the way), the number isn't finite, or divides by zero. Exact: a float counts as the fraction it is. */
int64_t rel_span_times(int64_t span, double factor, int64_t* result);
int64_t rel_span_over(int64_t span, double divisor, int64_t* result);
int64_t rel_span_shared(int64_t span, int64_t divisor, int64_t* result);

#ifdef __cplusplus
}
#endif

#endif
