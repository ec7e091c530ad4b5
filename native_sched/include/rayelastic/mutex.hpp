// A mutex whose rules clang checks (`./dev clang`): a member says which mutex guards it, a function which one its caller has, and code that
// touches the one, or calls the other, without it is refused. To other compilers it is std::mutex, and the words mean nothing.
//
// Lambdas are looked at by themselves: one that runs under the lock, as in a wait, says REL_HELD, too.
#pragma once

#include <mutex>

#ifdef __clang__
#define REL_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define REL_THREAD_SAFETY(attribute)
#endif

#define REL_GUARDED_BY(mutex) REL_THREAD_SAFETY(guarded_by(mutex))     // of a member
#define REL_HELD(mutex) REL_THREAD_SAFETY(requires_capability(mutex))  // of a function, by whoever calls it
#define REL_UNCHECKED REL_THREAD_SAFETY(no_thread_safety_analysis)     // of a function; the place says why

namespace rayelastic {

class REL_THREAD_SAFETY(capability("mutex")) Mutex : public std::mutex {};

// Held from here to the end of the scope, but between unlock() and lock(); condition variables take it as it is.
class REL_THREAD_SAFETY(scoped_lockable) Lock : public std::unique_lock<std::mutex> {
 public:
  explicit Lock(Mutex& mutex) REL_THREAD_SAFETY(acquire_capability(mutex)) : std::unique_lock<std::mutex>(mutex) {}
  ~Lock() REL_THREAD_SAFETY(release_capability()) = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() REL_THREAD_SAFETY(acquire_capability()) { std::unique_lock<std::mutex>::lock(); }
  void unlock() REL_THREAD_SAFETY(release_capability()) { std::unique_lock<std::mutex>::unlock(); }
};

}  // namespace rayelastic
