// The Python token: one engine lock in front of the GIL (architecture section 4), and the hooks by which bindings tie engine threads
// to an interpreter. Two workers never fight for the GIL: who can't have the token puts its port aside. Knows no Python.
//
// An operator that sleeps in Python (a request, a file, a timer) would keep all others out for nothing: the scheduler lets those in beside
// the token, and takes that back when they begin to compute.
//
// Owner: the thread that entered. It never submits downstream while it has the token, so a holder waits for nothing but user code,
// and whoever waits for the token gets it.
#pragma once

#include <atomic>
#include <cstdint>

#include "rayelastic/queue/flag_lock.hpp"

namespace rayelastic {

// All optional. `user` is a pointer-sized slot of the engine thread that calls, null at first: bindings keep their PyThreadState in it.
struct ThreadHooks {
  void* owner = nullptr;
  void (*started)(void* owner, void** user) = nullptr;  // first thing on every engine thread
  void (*stopped)(void* owner, void** user) = nullptr;  // last thing on every engine thread
  void (*enter)(void* owner, void** user) = nullptr;    // after the token was taken, e.g. PyEval_RestoreThread; may block
  void (*leave)(void* owner, void** user) = nullptr;    // before the token is released, e.g. PyEval_SaveThread
};

class Token {
 public:
  explicit Token(ThreadHooks hooks = {}) : hooks_(hooks) {}
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

  [[nodiscard]] bool try_enter(void** user);
  // Waits for it: shortly by spinning, then asleep. A waiter that was passed over for kPatience gets it next.
  void enter(void** user);
  // What waiters left in the lock word (FlagLock notes); wakes sleepers itself.
  [[nodiscard]] std::uint32_t leave(void** user);
  // The hooks alone: the thread may call what needs the token while another one has it, and waits for the interpreter like any thread.
  void enter_beside(void** user);
  void leave_beside(void** user);
  // True: the holder's leave() will answer with FlagLock::kRelist. False: it is free, try again.
  [[nodiscard]] bool ask_relist() { return lock_.leave_note(FlagLock<>::kRelist); }

 private:
  FlagLock<> lock_;
  ThreadHooks hooks_;
};

}  // namespace rayelastic
