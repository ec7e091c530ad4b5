#include "rayelastic/net/tls.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "openssl.hpp"
#include "rayelastic/mutex.hpp"

namespace rayelastic {

namespace {

using openssl::library;

constexpr char kIdentity[] = "rayelastic";             // each connection has a key of its own, so there is nothing to choose by
constexpr std::size_t kRecordBytes = 16384;            // the most of a TLS record
constexpr std::size_t kReadBytes = 5 * kRecordBytes;   // of one look into the socket: a frame of a link
constexpr std::size_t kSendBytes = 16 * kRecordBytes;  // that are encrypted before the socket has taken them
constexpr std::uint64_t kKeyBytesMost = std::uint64_t{64} << 30;
constexpr std::string_view kExportLabel = "EXPORTER-rayelastic";
constexpr std::size_t kExportBytes = 32;

std::string last_error() {
  std::string text;
  char one[256];
  while (const unsigned long code = library().ERR_get_error()) {
    library().ERR_error_string_n(code, one, sizeof(one));
    if (text.empty()) text = one;  // the first is the cause
  }
  return text.empty() ? "the other side ended the connection" : text;
}

}  // namespace

struct Tls::State {
  explicit State(int socket) : fd(socket) {}

  const int fd;
  std::array<unsigned char, kKeyBytes> key{};
  mutable Mutex mutex;  // of everything below
  openssl::Connection* connection REL_GUARDED_BY(mutex) = nullptr;
  bool certified REL_GUARDED_BY(mutex) = false;  // by certificates, instead of the key
  bool ended REL_GUARDED_BY(mutex) = false;
  bool done REL_GUARDED_BY(mutex) = false;
  std::string error REL_GUARDED_BY(mutex);
  std::array<char, kRecordBytes> record REL_GUARDED_BY(mutex){};  // that is being encrypted
  std::vector<char> out REL_GUARDED_BY(mutex);  // encrypted, for one call of send: a wake-up of the receiver for each record is slow
  std::size_t out_sent REL_GUARDED_BY(mutex) = 0;
  std::atomic<bool> unsent{false};
  std::uint64_t sent REL_GUARDED_BY(mutex) = 0;
  std::uint64_t update_every REL_GUARDED_BY(mutex) = kKeyBytesMost;
  std::uint64_t updates REL_GUARDED_BY(mutex) = 0;

  ~State() {
    if (connection != nullptr) library().SSL_free(connection);
    explicit_bzero(key.data(), key.size());
  }

  // OpenSSL calls these three within the calls of it below, which have the mutex.
  static int write(openssl::Bio* bio, const char* data, int bytes) REL_UNCHECKED {
    auto* const self = static_cast<State*>(library().BIO_get_data(bio));
    library().BIO_clear_flags(bio, openssl::kBioReads | openssl::kBioWrites | openssl::kBioRetry);
    self->out.insert(self->out.end(), data, data + bytes);
    self->unsent.store(true);
    return bytes;
  }

  // Everything that is encrypted into the socket; else false and errno.
  bool flush() REL_HELD(mutex) {
    while (out_sent < out.size()) {
      const ssize_t gone = ::send(fd, out.data() + out_sent, out.size() - out_sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (gone < 0 && errno == EINTR) continue;
      if (gone < 0) return false;
      out_sent += static_cast<std::size_t>(gone);
    }
    out.clear();
    out_sent = 0;
    unsent.store(false);
    return true;
  }

  static int read(openssl::Bio* bio, char* data, int bytes) REL_UNCHECKED {
    auto* const self = static_cast<State*>(library().BIO_get_data(bio));
    library().BIO_clear_flags(bio, openssl::kBioReads | openssl::kBioWrites | openssl::kBioRetry);
    const ssize_t got = ::recv(self->fd, data, static_cast<std::size_t>(bytes), MSG_DONTWAIT);
    if (got == 0) self->ended = true;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
      library().BIO_set_flags(bio, openssl::kBioReads | openssl::kBioRetry);
    return static_cast<int>(got);
  }

  static long control(openssl::Bio* bio, int what, long, void*) REL_UNCHECKED {
    auto* const self = static_cast<State*>(library().BIO_get_data(bio));
    if (what == openssl::kBioControlEnd) return self->ended ? 1 : 0;
    if (what != openssl::kBioControlFlush) return 0;
    if (self->done) return 1;  // `send` does it, once for all that it was given
    library().BIO_clear_flags(bio, openssl::kBioReads | openssl::kBioWrites | openssl::kBioRetry);
    if (self->flush()) return 1;
    if (errno == EAGAIN || errno == EWOULDBLOCK) library().BIO_set_flags(bio, openssl::kBioWrites | openssl::kBioRetry);
    return -1;
  }

  static openssl::Bio* bio_of(State* state) {
    static const openssl::BioMethod* const method = [] {
      openssl::BioMethod* const made = library().BIO_meth_new(openssl::kBioType, "rayelastic");
      if (made != nullptr) {
        library().BIO_meth_set_write(made, write);
        library().BIO_meth_set_read(made, read);
        library().BIO_meth_set_ctrl(made, control);
      }
      return made;
    }();
    openssl::Bio* const bio = method != nullptr ? library().BIO_new(method) : nullptr;
    if (bio == nullptr) throw std::runtime_error("OpenSSL: " + last_error());
    library().BIO_set_data(bio, state);
    library().BIO_set_init(bio, 1);
    return bio;
  }

  static unsigned give_key(const openssl::Connection* connection, unsigned char* key, unsigned most) {
    const auto* const self = static_cast<const State*>(library().SSL_get_ex_data(connection, 0));
    if (most < self->key.size()) return 0;
    std::ranges::copy(self->key, key);
    return static_cast<unsigned>(self->key.size());
  }
  static unsigned ask_client(openssl::Connection* connection, const char*, char* identity, unsigned most, unsigned char* key,
                             unsigned most_key) {
    if (most < sizeof(kIdentity)) return 0;
    std::memcpy(identity, kIdentity, sizeof(kIdentity));
    return give_key(connection, key, most_key);
  }
  static unsigned ask_server(openssl::Connection* connection, const char* identity, unsigned char* key, unsigned most_key) {
    return std::strcmp(identity, kIdentity) == 0 ? give_key(connection, key, most_key) : 0;
  }

  struct FreesContext {
    void operator()(openssl::Context* context) const { library().SSL_CTX_free(context); }
  };
  using OwnContext = std::unique_ptr<openssl::Context, FreesContext>;

  static OwnContext new_context(Side side) {
    OwnContext made(library().SSL_CTX_new(side == Side::Client ? library().TLS_client_method() : library().TLS_server_method()));
    if (made == nullptr) throw std::runtime_error("OpenSSL: " + last_error());
    // A suite whose hash is SHA-256, as an external key has it.
    const bool as_asked = library().SSL_CTX_ctrl(made.get(), openssl::kSetLeastVersion, openssl::kTls13, nullptr) == 1 &&
                          library().SSL_CTX_set_ciphersuites(made.get(), "TLS_AES_128_GCM_SHA256") == 1;
    if (!as_asked) throw std::runtime_error("OpenSSL: no TLS 1.3 with AES-128-GCM: " + last_error());
    library().SSL_CTX_set_num_tickets(made.get(), 0);
    library().SSL_CTX_ctrl(made.get(), openssl::kSetMode, openssl::kMovingWriteBuffer, nullptr);
    library().SSL_CTX_ctrl(made.get(), openssl::kSetReadAhead, 1, nullptr);
    library().SSL_CTX_set_default_read_buffer_len(made.get(), kReadBytes);
    return made;
  }

  // No side has a certificate or believes one: the key alone makes a connection.
  static openssl::Context* context_of(Side side) {
    static openssl::Context* const client = [] {
      OwnContext made = new_context(Side::Client);
      library().SSL_CTX_set_verify(made.get(), openssl::kVerifyPeer, nullptr);
      return made.release();
    }();
    static openssl::Context* const server = new_context(Side::Server).release();
    return side == Side::Client ? client : server;
  }

  static OwnContext context_of(Side side, const Certificates& files) {
    OwnContext made = new_context(side);
    openssl::Context* const context = made.get();
    const auto use = [](const std::string& file, int result) {
      if (result != 1) throw std::runtime_error(file + " can't be used: " + last_error());
    };
    library().ERR_clear_error();
    library().SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });  // nobody is asked for one
    use(files.own, library().SSL_CTX_use_certificate_chain_file(context, files.own.c_str()));
    use(files.own_key, library().SSL_CTX_use_PrivateKey_file(context, files.own_key.c_str(), openssl::kPem));  // checks that it belongs
    use(files.authorities, library().SSL_CTX_load_verify_locations(context, files.authorities.c_str(), nullptr));
    library().SSL_CTX_set_verify(context, openssl::kVerifyPeer | openssl::kFailWithoutCertificate, nullptr);
    return made;
  }

  // Takes part in the context, which may be freed then.
  void connect(openssl::Context* context, Side side) REL_HELD(mutex) {
    connection = library().SSL_new(context);
    if (connection == nullptr) throw std::runtime_error("OpenSSL: " + last_error());
    library().SSL_set_ex_data(connection, 0, this);
    openssl::Bio* const bio = bio_of(this);
    library().SSL_set_bio(connection, bio, bio);
    side == Side::Client ? library().SSL_set_connect_state(connection) : library().SSL_set_accept_state(connection);
  }

  // What a call that gave nothing means for the caller. errno is that of the socket if it was the socket's.
  ssize_t outcome(int result) REL_HELD(mutex) {
    const int of_socket = errno;
    switch (library().SSL_get_error(connection, result)) {
      case openssl::kWantsRead:
      case openssl::kWantsWrite:
        errno = EAGAIN;
        return -1;
      case openssl::kEnd:
        return 0;
      default:
        break;
    }
    if (ended) return 0;
    const std::string why = last_error();
    (void)flush();  // the alert
    if (of_socket == ECONNRESET || of_socket == EPIPE || of_socket == ETIMEDOUT) {
      errno = of_socket;
      return -1;
    }
    if (error.empty()) error = why;
    errno = EPROTO;
    return -1;
  }

  Step go_on() REL_HELD(mutex) {
    if (done) return Step::Done;
    if (!error.empty()) return Step::Failed;
    library().ERR_clear_error();
    const int result = library().SSL_do_handshake(connection);
    if (result == 1) {
      // With a certificate there would be no key to it: whoever was believed by one isn't who was dialled.
      if (!certified && library().SSL_session_reused(connection) != 1) {
        error = "the other side doesn't have the key";
        return Step::Failed;
      }
      done = true;
      return Step::Done;
    }
    switch (library().SSL_get_error(connection, result)) {
      case openssl::kWantsRead:
        return Step::WantsRead;
      case openssl::kWantsWrite:
        return Step::WantsWrite;
      default:
        error = last_error();
        return Step::Failed;
    }
  }

  // What goes into the next record: where it lies, if that is in one piece, else a copy.
  std::span<const char> next(std::span<const iovec> parts, std::size_t skip) REL_HELD(mutex) {
    std::size_t filled = 0;
    for (const iovec& part : parts) {
      const std::size_t skipped = std::min(skip, part.iov_len);
      skip -= skipped;
      const std::size_t left = part.iov_len - skipped;
      if (filled == 0 && left >= record.size()) return {static_cast<const char*>(part.iov_base) + skipped, record.size()};
      const std::size_t taken = std::min(left, record.size() - filled);
      if (taken > 0) std::memcpy(record.data() + filled, static_cast<const char*>(part.iov_base) + skipped, taken);
      filled += taken;
    }
    return {record.data(), filled};
  }
};

const std::string& Tls::missing() { return library().missing; }

Tls::Tls(int fd, Side side, std::string_view key) : state_(std::make_unique<State>(fd)) {
  if (key.size() != kKeyBytes) throw std::invalid_argument("a key of TLS has 32 bytes");
  if (!missing().empty()) throw std::runtime_error(missing());
  std::ranges::copy(key, state_->key.begin());
  state_->connect(State::context_of(side), side);
  if (side == Side::Client) {
    library().SSL_set_psk_client_callback(state_->connection, State::ask_client);
  } else {
    library().SSL_set_psk_server_callback(state_->connection, State::ask_server);
  }
}

Tls::Tls(int fd, Side side, const Certificates& files) : state_(std::make_unique<State>(fd)) {
  if (!missing().empty()) throw std::runtime_error(missing());
  state_->certified = true;
  state_->connect(State::context_of(side, files).get(), side);
}

Tls::~Tls() = default;

Tls::Step Tls::handshake() {
  const Lock lock(state_->mutex);
  return state_->go_on();
}

ssize_t Tls::send(std::span<const iovec> parts) {
  State& state = *state_;
  const Lock lock(state.mutex);
  if (!state.flush()) return -1;
  std::size_t total = 0;
  while (total < kSendBytes) {
    const std::span<const char> bytes = state.next(parts, total);
    if (bytes.empty()) break;
    library().ERR_clear_error();
    if (state.sent >= state.update_every) {
      state.sent = 0;
      if (library().SSL_key_update(state.connection, openssl::kUpdateNotRequested) == 1) ++state.updates;
    }
    std::size_t written = 0;
    errno = 0;
    const int result = library().SSL_write_ex(state.connection, bytes.data(), bytes.size(), &written);
    if (result != 1) {
      if (state.outcome(result) == 0) errno = EPIPE;
      return -1;
    }
    state.sent += written;
    total += written;
  }
  if (!state.flush() && errno != EAGAIN && errno != EWOULDBLOCK) return -1;
  return static_cast<ssize_t>(total);
}

bool Tls::unsent() const noexcept { return state_->unsent.load(); }

ssize_t Tls::receive(std::span<const iovec> parts) {
  State& state = *state_;
  const Lock lock(state.mutex);
  std::size_t total = 0;
  for (const iovec& part : parts) {
    std::size_t filled = 0;
    while (filled < part.iov_len) {
      library().ERR_clear_error();
      std::size_t got = 0;
      errno = 0;
      const int result = library().SSL_read_ex(state.connection, static_cast<char*>(part.iov_base) + filled, part.iov_len - filled, &got);
      if (result != 1) {
        const ssize_t outcome = state.outcome(result);
        return total > 0 ? static_cast<ssize_t>(total) : outcome;
      }
      filled += got;
      total += got;
    }
  }
  return static_cast<ssize_t>(total);
}

std::string Tls::error() const {
  const Lock lock(state_->mutex);
  return state_->error;
}

std::string Tls::in_force() const {
  const Lock lock(state_->mutex);
  if (!state_->done) return {};
  return std::string(library().SSL_get_version(state_->connection)) + " " +
         library().SSL_CIPHER_get_name(library().SSL_get_current_cipher(state_->connection)) +
         (state_->certified ? " by certificates" : "");
}

std::string Tls::exported() const {
  const Lock lock(state_->mutex);
  std::array<unsigned char, kExportBytes> bytes{};
  if (!state_->done || library().SSL_export_keying_material(state_->connection, bytes.data(), bytes.size(), kExportLabel.data(),
                                                            kExportLabel.size(), nullptr, 0, 0) != 1) {
    return {};
  }
  return {bytes.begin(), bytes.end()};
}

std::uint64_t Tls::key_updates() const {
  const Lock lock(state_->mutex);
  return state_->updates;
}

void Tls::update_key_every(std::uint64_t bytes) {
  const Lock lock(state_->mutex);
  state_->update_every = bytes;
}

}  // namespace rayelastic
