#include "rayelastic/net/link/link_socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace rayelastic {

namespace {

msghdr message_of(std::span<const iovec> parts) noexcept {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return message;
}

}  // namespace

LinkSocket::LinkSocket(int fd, std::shared_ptr<Tls> tls) noexcept : fd_(fd), tls_(std::move(tls)) {
  (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_NONBLOCK);  // sends say themselves that they don't block
  const int yes = 1;  // frames are already as large as they get; a Unix socket doesn't know the option
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

LinkSocket::~LinkSocket() { ::close(fd_); }

void LinkSocket::shut_down() noexcept { (void)::shutdown(fd_, SHUT_RDWR); }

ssize_t LinkSocket::send(std::span<const iovec> parts) {
  if (tls_) return tls_->send(parts);
  const msghdr message = message_of(parts);
  return ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

ssize_t LinkSocket::receive(std::span<const iovec> parts) {
  if (tls_) return tls_->receive(parts);
  msghdr message = message_of(parts);
  return ::recvmsg(fd_, &message, MSG_DONTWAIT);
}

bool LinkSocket::set_patience(std::chrono::milliseconds patience) noexcept {
  patience_ = patience;
  const auto milliseconds = patience.count();
  const timeval wait{milliseconds / 1000, milliseconds % 1000 * 1000};
  return ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0;
}

ssize_t LinkSocket::wait_for_bytes(std::span<const iovec> parts) {
  if (!tls_) {
    msghdr message = message_of(parts);
    return ::recvmsg(fd_, &message, 0);
  }
  while (true) {
    const ssize_t count = tls_->receive(parts);
    if (count >= 0 || errno != EAGAIN) return count;
    pollfd readable{fd_, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(patience_.count()));
    if (ready > 0) continue;  // perhaps a part of a record only
    if (ready == 0) errno = EAGAIN;
    return -1;
  }
}

std::uint64_t LinkSocket::retransmits() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof(info);
  return ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 ? info.tcpi_total_retrans : 0;
}

// Whether a peer that closes shows as an end or as a reset depends on what it had left unread.
std::string LinkSocket::loss_of(int error) const {
  if (error == 0 || error == ECONNRESET || error == EPIPE) return "it closed the connection without a goodbye; its process ended or failed";
  return "the connection broke: " + (error == EPROTO && tls_ ? tls_->error() : std::generic_category().message(error));
}

}  // namespace rayelastic
