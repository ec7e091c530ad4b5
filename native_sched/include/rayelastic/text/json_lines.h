/* What of lines of JSON has to be known before another parser reads them: whether it can, and whether it would change a number.
 *
 * Both answers are on the safe side: what is said to be safe is. Nothing is kept. Thread-safe.
 */
#ifndef RAYELASTIC_JSON_LINES_H
#define RAYELASTIC_JSON_LINES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the text is UTF-8, and each line that isn't blank begins and ends as one object that isn't nested deeper than so many levels,
 * and has nothing behind it. What is between its brackets isn't looked at. */
int rel_json_are_objects(const char* text, int64_t bytes, int64_t deepest);

/* Whether there is a whole number of 16 digits or more behind one of these names, which stand in `names`, a line each: an empty line
 * means items of lists. */
int rel_json_has_long_whole(const char* text, int64_t bytes, const char* names, int64_t names_bytes);

#ifdef __cplusplus
}
#endif

#endif
