// The C face of rel_context: what compiled functions call. No C++ exception leaves it, since the caller may be machine code
// without unwind tables; it becomes the call's refusal, and the context remembers the message.
#include "rayelastic/abi.h"

#include <exception>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace {

template <class Call, class Result>
Result guarded(rel_context* context, Result refused, Call&& call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    try {
      context->fail(error.what());
    } catch (...) {  // no memory for the message: the refusal alone has to do
    }
    return refused;
  } catch (...) {
    return refused;
  }
}

}  // namespace

extern "C" {

int rel_flush(rel_context* context, int64_t n) {
  return guarded(context, 1, [&] { return context->flush(n) ? 0 : 1; });
}

void rel_finish(rel_context* context) {
  guarded(context, 0, [&] { return context->finish(), 0; });
}

void* rel_allocate(rel_context* context, int64_t bytes) {
  if (bytes < 0) return nullptr;
  return guarded(context, static_cast<void*>(nullptr), [&] { return context->allocate(static_cast<std::size_t>(bytes)); });
}

int rel_keep_text(rel_context* context, void* field, const void* text, int64_t bytes) {
  if (bytes < 0 || bytes > INT64_C(0xFFFFFFFF)) return 1;
  return guarded(context, 1,
                 [&] { return context->keep_text(field, static_cast<const char*>(text), static_cast<std::uint32_t>(bytes)) ? 0 : 1; });
}

void rel_fail(rel_context* context, const char* message) {
  guarded(context, 0, [&] { return context->fail(message == nullptr ? "" : message), 0; });
}

void rel_kept(rel_context* context, int64_t n) { context->kept(n); }

int32_t rel_port(const rel_context* context) { return context->port(); }

int rel_emit(rel_context* context, int32_t output_port, const void* records, int64_t n) {
  return guarded(context, 1, [&] { return context->emit(output_port, records, n) ? 0 : 1; });
}

const void* rel_staged(const rel_context* context, int32_t port, int64_t* n) {
  int64_t count = 0;
  const void* records = context->staged(port, count);
  if (n != nullptr) *n = count;
  return records;
}

int64_t rel_staged_count(const rel_context* context, int32_t port) {
  int64_t count = 0;
  (void)context->staged(port, count);
  return count;
}

int64_t rel_firings(const rel_context* context) { return context->firings(); }

int64_t rel_watermark(const rel_context* context) { return context->watermark(); }

}  // extern "C"
