// Wakes a thread that polls.
//
// Invariant: a wake-up stays until it is cleared, so one that comes before the poll isn't lost.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

namespace rayelastic {

class WakeUp {
 public:
  // Throws std::system_error, which names the owner.
  explicit WakeUp(const std::string& owner) : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (fd_ < 0) throw std::system_error(errno, std::generic_category(), owner);
  }
  ~WakeUp() { ::close(fd_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }  // readable after signal()
  void signal() noexcept {
    const std::uint64_t one = 1;
    (void)!::write(fd_, &one, sizeof(one));
  }
  void clear() noexcept {
    std::uint64_t count;
    (void)!::read(fd_, &count, sizeof(count));
  }

 private:
  const int fd_;
};

}  // namespace rayelastic
