// A stack of its own for code that is stopped and resumed at will, all on one thread. Knows nothing of atomics or schedules.
// A fiber may be restarted at any time: what was on its stack is then forgotten without being destroyed.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstring>
#include <memory>

namespace rayelastic::model {

class Fiber {
 public:
  using Body = void (*)(void* argument);

  Fiber() = default;  // stands for the stack that is there anyway
  Fiber(Body body, void* argument) : body_(body), argument_(argument), stack_(std::make_unique<std::byte[]>(kStackBytes)) {
    ucontext_t context;
    ucontext_t here;
    getcontext(&context);
    context.uc_stack.ss_sp = stack_.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    creating_ = this;
    makecontext(&context, &Fiber::enter, 0);
    if (_setjmp(creator_) == 0) swapcontext(&here, &context);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next jump to it begins its body, which must never return.
  void restart() { std::memcpy(&at_, &start_, sizeof at_); }

  static void jump(Fiber& from, Fiber& to) {
    if (_setjmp(from.at_) == 0) _longjmp(to.at_, 1);
  }

 private:
  static constexpr std::size_t kStackBytes = 256 * 1024;

  static void enter() {
    Fiber& self = *creating_;
    if (_setjmp(self.start_) == 0) _longjmp(creator_, 1);
    self.body_(self.argument_);
  }

  static inline Fiber* creating_ = nullptr;
  static inline jmp_buf creator_;

  Body body_ = nullptr;
  void* argument_ = nullptr;
  std::unique_ptr<std::byte[]> stack_;
  jmp_buf start_;
  jmp_buf at_;
};

}  // namespace rayelastic::model
