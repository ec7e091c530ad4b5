/* Values of JSON texts, as json.loads and Python's operators have them; callable from compiled code by these names.
 *
 * A text is read each time it is asked for something, from its first byte to its last: what isn't JSON, or no such value, is refused, and
 * so is what CPython has an answer to that can't be had here (ints beyond 64 bits, lone surrogates, more than 200 levels). Of a key that
 * an object has twice the last value counts. What is given of a text is a part of it. Conventions are those of text.h.
 */
#ifndef RAYELASTIC_JSON_H
#define RAYELASTIC_JSON_H

#include "rayelastic/text/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether it is null: never refuses. */
int32_t rel_json_is_null(const rel_text* json, int64_t* value);

/* json[key]; of a key that isn't there null, or it is refused if it is `required`. */
int32_t rel_json_member(const rel_text_room* room, const rel_text* json, const rel_text* key, int64_t required, rel_text* made);

/* json[index] of a list; an index below 0 counts from its end. */
int32_t rel_json_element(const rel_text_room* room, const rel_text* json, int64_t index, rel_text* made);

/* text in json: a key of an object, an element of a list. */
int32_t rel_json_contains(const rel_text* json, const rel_text* text, int64_t* value);

/* len() of objects, lists and texts; bool() of anything. */
int32_t rel_json_length(const rel_text* json, int64_t* value);
int32_t rel_json_is_true(const rel_text* json, int64_t* value);

/* The value, of a whole number, a number, a number that isn't another one as a float, true or false, a text. */
int32_t rel_json_to_int(const rel_text* json, int64_t* value);
int32_t rel_json_to_float(const rel_text* json, double* value);
int32_t rel_json_to_same_float(const rel_text* json, double* value);
int32_t rel_json_to_bool(const rel_text* json, int64_t* value);
int32_t rel_json_to_text(const rel_text_room* room, const rel_text* json, rel_text* made);

/* json == text. */
int32_t rel_json_is_text(const rel_text* json, const rel_text* text, int64_t* value);

/* -1, 0 or 1 as a number is less than, equal to or greater than another; 2 if it is neither, as NaN is. What is no number is refused, or
 * gives 2 if it needn't be `ordered`. */
int32_t rel_json_order_int(const rel_text* json, int64_t other, int64_t ordered, int64_t* value);
int32_t rel_json_order_float(const rel_text* json, double other, int64_t ordered, int64_t* value);

#ifdef __cplusplus
}
#endif

#endif
