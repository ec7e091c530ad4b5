// TLS 1.3 over a connected socket, with a key that both sides have already and nobody else: no certificates. RFC 8446, external PSK with a
// fresh Diffie-Hellman exchange, so that what was recorded stays secret if the key is ever found. docs/decisions/encryption.md says why so.
//
// OpenSSL does it, opened at run time: 1.1.1 or 3. Where it isn't there, `Tls::missing` says so, and nothing else of this file may be used.
// An end of the connection shows as with a plain socket: protocols over this one say themselves when they are through.
//
// Thread-safe: calls of one connection take turns. Nothing blocks, whatever the socket's mode is.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace rayelastic {

class Tls {
 public:
  enum class Side : std::uint8_t { Client, Server };
  enum class Step : std::uint8_t { Done, WantsRead, WantsWrite, Failed };

  static constexpr std::size_t kKeyBytes = 32;

  [[nodiscard]] static const std::string& missing();  // why there is no TLS on this machine; empty if there is

  // Doesn't own `fd`. Throws std::invalid_argument for a key of another length, std::runtime_error where it is missing.
  Tls(int fd, Side side, std::string_view key);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // Goes on with the handshake as far as the socket lets it. Failed: `error` says why.
  [[nodiscard]] Step handshake();

  // As sendmsg and recvmsg with MSG_DONTWAIT: bytes, 0 at the end of the connection, or -1 and errno; EPROTO: `error` says why.
  // After EAGAIN the next send begins with the same bytes. What the socket had no room for is kept (`unsent`); a later send, of nothing too,
  // sends it first, and says EAGAIN as long as it can't.
  [[nodiscard]] ssize_t send(std::span<const iovec> parts);
  [[nodiscard]] ssize_t receive(std::span<const iovec> parts);

  [[nodiscard]] bool unsent() const noexcept;

  [[nodiscard]] std::string error() const;
  [[nodiscard]] std::string in_force() const;       // such as "TLSv1.3 TLS_AES_128_GCM_SHA256"; empty before the handshake has ended
  [[nodiscard]] std::uint64_t key_updates() const;  // of what this side sends
  void update_key_every(std::uint64_t bytes);       // for tests; else each 64 GiB, far below what AES-GCM allows (RFC 8446, 5.5)

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace rayelastic
