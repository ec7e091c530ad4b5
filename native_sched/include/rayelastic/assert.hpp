// Invariants that are checked at run time.
//
//   RE_CHECK    always, in releases too: compares what is at hand, or stands where little happens
//   RE_ASSERT   with RAYELASTIC_ASSERTIONS=1, as in tests, under sanitizers and in soaks: may walk a structure or read atomics
//
// What is written, sent or exported is checked where it leaves and again where it comes back. A failed check means a fault of this program: it
// ends the process before damaged state is saved or sent. Input from outside is never checked this way: readers reject it with an error.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace rayelastic::assertions {

inline bool enabled = [] {
  const char* const variable = std::getenv("RAYELASTIC_ASSERTIONS");
  return variable != nullptr && variable[0] == '1';
}();

// Called in place of the end of the process, by tests that break an invariant.
inline void (*on_failure)(const char* failure) = nullptr;

[[gnu::cold, gnu::noinline]] inline void fail(const char* condition, const char* file, int line) {
  char failure[512];
  std::snprintf(failure, sizeof failure, "invariant broken: %s (%s:%d)", condition, file, line);
  if (on_failure != nullptr) return on_failure(failure);
  std::fprintf(stderr, "rayelastic: %s; this is a defect, please report it\n", failure);
  std::abort();
}

}  // namespace rayelastic::assertions

#define RE_CHECK(...) ((__VA_ARGS__) ? static_cast<void>(0) : ::rayelastic::assertions::fail(#__VA_ARGS__, __FILE__, __LINE__))
#define RE_ASSERT(...)                                                        \
  (!::rayelastic::assertions::enabled || (__VA_ARGS__) ? static_cast<void>(0) \
                                                       : ::rayelastic::assertions::fail(#__VA_ARGS__, __FILE__, __LINE__))
