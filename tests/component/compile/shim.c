/* The engine services of abi.h for tests: flushed records are collected, memory is kept until the end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct rel_context {
  char *collected;
  int64_t bytes, flushes, stop_after;
  const char *out;
  int64_t record_size;
  void **blocks;
  int64_t block_count, kept;
} rel_context;

rel_context *shim_open(const void *out, int64_t record_size, int64_t stop_after) {
  rel_context *context = calloc(1, sizeof *context);
  context->out = out, context->record_size = record_size, context->stop_after = stop_after;
  return context;
}

static void *keep(rel_context *context, void *block) {
  context->blocks = realloc(context->blocks, sizeof(void *) * (size_t)(context->block_count + 1));
  context->blocks[context->block_count++] = block;
  return block;
}

void shim_close(rel_context *context) {
  for (int64_t i = 0; i < context->block_count; ++i) free(context->blocks[i]);
  free(context->blocks), free(context->collected), free(context);
}

const char *shim_collected(rel_context *context) { return context->collected; }
int64_t shim_bytes(rel_context *context) { return context->bytes; }
int64_t shim_flushes(rel_context *context) { return context->flushes; }
int64_t shim_kept(rel_context *context) { return context->kept; }
int64_t shim_blocks(rel_context *context) { return context->block_count; }

int rel_flush(rel_context *context, int64_t n) {
  const int64_t size = n * context->record_size;
  context->collected = realloc(context->collected, (size_t)(context->bytes + size + 1));
  memcpy(context->collected + context->bytes, context->out, (size_t)size);
  context->bytes += size;
  return ++context->flushes > context->stop_after;
}

void rel_kept(rel_context *context, int64_t n) { context->kept = n; }
void rel_finish(rel_context *context) { (void)context; }
void rel_fail(rel_context *context, const char *message) { (void)context, (void)message; }
void *rel_allocate(rel_context *context, int64_t bytes) { return keep(context, malloc((size_t)bytes + 1)); }

int rel_keep_text(rel_context *context, void *field, const void *text, int64_t bytes) {
  char view[16] = {0};
  const uint32_t length = (uint32_t)bytes;
  memcpy(view, &length, 4);
  if (bytes <= 12) {
    memcpy(view + 4, text, (size_t)bytes);
  } else {
    void *copy = keep(context, malloc((size_t)bytes));
    memcpy(copy, text, (size_t)bytes);
    memcpy(view + 4, text, 4);
    memcpy(view + 8, &copy, sizeof copy);
  }
  memcpy(field, view, 16);
  return 0;
}
