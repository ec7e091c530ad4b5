// How much stack threads get.
#pragma once

#include <pthread.h>

#include <cstddef>

#include "check.hpp"

namespace rayelastic::check {

// Threads that are made from now on have stacks of that size, until this is destroyed.
class ThreadStacks {
 public:
  explicit ThreadStacks(std::size_t bytes) {
    pthread_getattr_default_np(&before_);
    pthread_attr_t wanted;
    pthread_attr_init(&wanted);
    pthread_attr_setstacksize(&wanted, bytes);
    CHECK_EQ(pthread_setattr_default_np(&wanted), 0);
    pthread_attr_destroy(&wanted);
  }
  ~ThreadStacks() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  ThreadStacks(const ThreadStacks&) = delete;
  ThreadStacks& operator=(const ThreadStacks&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace rayelastic::check
