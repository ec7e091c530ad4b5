/* The C signature that every operator function has, whatever lane it was written in.
 *
 * A run of `n` fixed-stride input records goes in, at most `capacity` output records come out in `out`.
 * The engine guarantees capacity >= n, so ONE_TO_ONE and FILTER functions need not check it. A function
 * that makes more calls rel_flush(context, capacity_used) when `out` is full and goes on at out[0].
 *
 * Returned value:
 *   >= 0              records left in out, to be submitted by the engine
 *   REL_STOPPED       rel_flush said that the operator has to stop; everything is being shut down
 *   REL_FAILED(i)     the user's code raised for input tuple i (-1 - i); the engine carries the error as a value
 *
 * State: an operator without REL_KEYED gets its own state pointer. With REL_KEYED `state` is
 * `void *const *slots`: slots[i] is the state record of the key of tuple i (stable address for the key's life).
 *
 * Several input ports: a disjunctive operator is called with a run of one of them, rel_port tells which. A conjunctive one is called
 * when all its ports have the counts that it asked for: rel_firings says how often it fires in this call, rel_staged gives what
 * each port has for it; `in` and `n` are those of port 0, and capacity >= n of any port. When a port has ended with too few records,
 * what the others hold (and get later) comes in calls with rel_firings = 0: nothing is lost, and what it means is the operator's matter.
 * Several output ports: what is left in `out` goes to port 0; rel_emit submits records from anywhere to any port.
 *
 * Sources are called with in = NULL, n = 0, again and again until they called rel_finish(context); they
 * block inside until they have something, or until their `interrupt` hook is called.
 * REL_ON_FINISH operators are called once with in = NULL, n = 0 when all their inputs are final; REL_ON_WATERMARK operators whenever
 * the watermark of their inputs has advanced: rel_watermark tells which call it is. They pass the mark on themselves, or don't.
 * REL_ON_PORT_END operators are called so when one of their input ports has ended and another hasn't: rel_port tells which.
 */
#ifndef RAYELASTIC_ABI_H
#define RAYELASTIC_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REL_ABI_VERSION 1

typedef struct rel_context rel_context;

typedef int64_t (*rel_process)(const void* in, int64_t n, void* out, int64_t capacity, void* state, rel_context* context);

#define REL_STOPPED INT64_MIN
#define REL_FAILED(i) (-1 - (int64_t)(i))

enum rel_flags {
  REL_ONE_TO_ONE = 1u << 0,   /* exactly n records out, in order */
  REL_FILTER = 1u << 1,       /* a subsequence of the input, same schema */
  REL_IN_PLACE = 1u << 2,     /* out may be the input buffer */
  REL_KEYED = 1u << 3,        /* state is an array of slots, one per tuple */
  REL_NEEDS_TOKEN = 1u << 4,  /* only to be called while holding the Python token */
  REL_SOURCE = 1u << 5,       /* no input port; runs on an operator thread */
  REL_SINK = 1u << 6,         /* no output port */
  REL_ON_FINISH = 1u << 7,    /* wants the call with n = 0 at the end of its input */
  REL_ON_WATERMARK = 1u << 8, /* wants a call with n = 0 when its watermark has advanced, and passes watermarks on itself */
  REL_BESIDE_TOKEN = 1u << 9, /* only to be called in Python, and beside its token: it may wait for things */
  REL_ON_PORT_END = 1u << 10, /* wants a call with n = 0 when an input port has ended and others go on */
  REL_ON_COMMAND = 1u << 11   /* takes commands: may be poked */
};

/* Engine services; named symbols, callable from C++, from compiled Python and from bindings alike. */

/* Submits out[0..n) downstream. 0: go on at out[0]. Non-zero: return REL_STOPPED at once. */
int rel_flush(rel_context* context, int64_t n);

/* Says that a source has no more tuples; what it returns from this call is its last run. */
void rel_finish(rel_context* context);

/* `bytes` bytes for the text of an output record of this call; live as long as any run that refers to them. NULL: refused. */
void* rel_allocate(rel_context* context, int64_t bytes);

/* Stores text into a string-view field of a keyed state record, which owns its copy. 0 on success. */
int rel_keep_text(rel_context* context, void* field, const void* text, int64_t bytes);

/* Explains a failure that isn't a Python exception; return REL_FAILED(i) afterwards. */
void rel_fail(rel_context* context, const char* message);

/* Of a FILTER that returns REL_FAILED(i) next: n of the tuples before i were kept and are in out. */
void rel_kept(rel_context* context, int64_t n);

/* The input port of the run that is being processed. */
int32_t rel_port(const rel_context* context);

/* Submits n records of the operator's own memory to an output port, before what is still in `out`. Non-zero: return REL_STOPPED at once. */
int rel_emit(rel_context* context, int32_t output_port, const void* records, int64_t n);

/* The records of an input port for this call, and in *n (if n isn't NULL) their number; NULL if there are none. */
const void* rel_staged(const rel_context* context, int32_t port, int64_t* n);
int64_t rel_staged_count(const rel_context* context, int32_t port);

/* How often a conjunctive operator fires in this call: each EXACT port has count * firings records. 0: the rest after a port's end.
 * -1: no firing (a disjunctive operator, a source, the call at the end of the input). */
int64_t rel_firings(const rel_context* context);

/* Up to which event time, in ticks, all records have come: INT64_MIN before the first watermark, INT64_MAX when all inputs have ended. */
int64_t rel_watermark(const rel_context* context);

#ifdef __cplusplus
}
#endif

#endif
