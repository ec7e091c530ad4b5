// The connection under a link: a connected stream socket, encrypted where there is TLS.
//
// Invariant: it owns the socket to its own end, and every byte goes through TLS if there is TLS.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "rayelastic/net/tls.hpp"

namespace rayelastic {

// Skips the first `bytes` bytes of the parts.
inline void skip(std::span<iovec> parts, std::size_t bytes) noexcept {
  for (iovec& part : parts) {
    const std::size_t skipped = std::min(bytes, part.iov_len);
    part = {static_cast<char*>(part.iov_base) + skipped, part.iov_len - skipped};
    bytes -= skipped;
  }
}

class LinkSocket {
 public:
  LinkSocket(int fd, std::shared_ptr<Tls> tls) noexcept;
  ~LinkSocket();
  LinkSocket(const LinkSocket&) = delete;
  LinkSocket& operator=(const LinkSocket&) = delete;

  // As sendmsg and recvmsg: bytes, 0 at the end of the connection, or -1 and errno. Neither blocks.
  [[nodiscard]] ssize_t send(std::span<const iovec> parts);
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts);
  // Waits for the first bytes, for `patience` at most: then EAGAIN.
  [[nodiscard]] ssize_t wait_for_bytes(std::span<const iovec> parts);
  [[nodiscard]] bool set_patience(std::chrono::milliseconds patience) noexcept;  // false: errno says why
  // Ends the connection both ways. Any thread, any number of times.
  void shut_down() noexcept;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] bool is_encrypted() const noexcept { return tls_ != nullptr; }
  [[nodiscard]] bool has_unsent() const noexcept { return tls_ && tls_->unsent(); }  // that send() has accepted
  [[nodiscard]] std::string encryption() const { return tls_ ? tls_->in_force() : std::string(); }
  [[nodiscard]] std::uint64_t retransmits() const noexcept;
  // What the end of the connection (error 0), or an error of it, means.
  [[nodiscard]] std::string loss_of(int error) const;

 private:
  const int fd_;
  const std::shared_ptr<Tls> tls_;
  std::chrono::milliseconds patience_{0};
};

}  // namespace rayelastic
