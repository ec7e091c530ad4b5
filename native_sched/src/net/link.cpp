#include "rayelastic/net/link.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "rayelastic/assert.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kLeastFrameBytes = 1024;

void check(const LinkOptions& options) {
  const auto refuse = [&options](const char* what) { throw std::invalid_argument("link '" + options.name + "': " + what); };
  if (options.frame_bytes < kLeastFrameBytes) refuse("frame_bytes is less than 1 KiB");
  if (options.max_frame_bytes < options.frame_bytes || options.max_frame_bytes > (1U << 30))
    refuse("max_frame_bytes is less than frame_bytes or more than 1 GiB");
  if (options.most_text > (2U << 30)) refuse("most_text is more than 2 GiB");
  if (options.window_bytes < 4 * options.frame_bytes) refuse("window_bytes is less than four times frame_bytes");
  if (options.heartbeat.count() <= 0 || options.silence < 4 * options.heartbeat) refuse("silence is less than four heartbeats");
}

}  // namespace

std::shared_ptr<Link> Link::over(int fd, LinkOptions options, std::shared_ptr<Tls> tls) {
  try {
    check(options);
    std::shared_ptr<Link> link(new Link(fd, std::move(options), std::move(tls)));
    link->service_ = std::thread(&Link::serve, link.get());
    return link;
  } catch (const std::invalid_argument&) {
    ::close(fd);
    throw;
  }
}

Link::Link(int fd, LinkOptions options, std::shared_ptr<Tls> tls)
    : options_(std::move(options)),
      fd_(fd),
      tls_(std::move(tls)),
      wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      last_sent_(Clock::now()) {
  if (wake_fd_ < 0) {
    const int error = errno;
    ::close(fd_);
    throw std::system_error(error, std::generic_category(), "link '" + options_.name + "'");
  }
  (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_NONBLOCK);  // sends say themselves that they don't block
  const int yes = 1;  // frames are already as large as they get; a Unix socket doesn't know the option
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

Link::~Link() {
  closing_.store(true);
  interrupt();
  if (service_.joinable()) service_.join();
  ::close(wake_fd_);
  ::close(fd_);
}

void Link::interrupt() noexcept {
  {
    const Lock lock(mutex_);  // so that whoever waits has either seen the flag or hears the notification
    stopping_.store(true);
  }
  (void)::shutdown(fd_, SHUT_RDWR);
  changed_.notify_all();
  wake();
}

void Link::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_fd_, &one, sizeof(one));
}

void Link::open(Role role, std::shared_ptr<const Schema> schema) {
  {
    const Lock lock(mutex_);
    if (role_ != Role::None) throw std::logic_error("link '" + options_.name + "' is already used by an operator");
    schema_ = std::move(schema);
    if (schema_->record_size() > options_.max_frame_bytes / 2)
      throw std::invalid_argument("link '" + options_.name + "': a record has no room in a frame");
    if (role == Role::Out) {
      open_ = std::make_unique<FrameBody>(schema_, options_.frame_bytes, options_.most_text);
      sealed_ = std::make_unique<FrameBody>(schema_, options_.frame_bytes, options_.most_text);
      keep_ahead(0);  // also what is gathered before the first credit comes
    } else {
      grant_due_ = options_.window_bytes;                    // the first Credit
      const auto milliseconds = options_.heartbeat.count();  // how often a waiting receive looks at the time
      const timeval wait{milliseconds / 1000, milliseconds % 1000 * 1000};
      if (::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) != 0)
        throw std::system_error(errno, std::generic_category(), "link '" + options_.name + "'");
    }
    RE_CHECK(role != Role::None);  // heartbeats may have been sent before
    role_ = role;
    hello_due_ = true;
  }
  wake();
}

void Link::open_out(std::shared_ptr<const Schema> schema) { open(Role::Out, std::move(schema)); }
void Link::open_in(std::shared_ptr<const Schema> schema) { open(Role::In, std::move(schema)); }

// The receiving side's thread sends only: it never reads, so that P08's thread alone owns what comes in.
void Link::serve() {
  auto last_beat = Clock::now();
  bool hung = false;  // poll reports a hang-up whether asked or not; looking again and again would burn a core
  while (!closing_.load()) {
    pollfd fds[2] = {{fd_, 0, 0}, {wake_fd_, POLLIN, 0}};
    bool reads;
    {
      const Lock lock(mutex_);
      const bool ended = failed_ || stopping_.load();
      reads = role_ == Role::Out && !goodbye_heard_ && !ended;
      if (reads) fds[0].events |= POLLIN;
      watched_ = has_unsent() && !output_broken_;
      if (watched_) fds[0].events |= POLLOUT;
      if (ended || (hung && !reads)) fds[0].fd = -1;
    }
    if (::poll(fds, 2, static_cast<int>(options_.heartbeat.count())) < 0 && errno != EINTR) break;
    if ((fds[1].revents & POLLIN) != 0) {
      std::uint64_t count;
      (void)!::read(wake_fd_, &count, sizeof(count));
    }
    hung = hung || (fds[0].revents & (POLLHUP | POLLERR)) != 0;
    if (reads && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_control();

    const Lock lock(mutex_);
    if (const auto now = Clock::now(); now - last_beat >= options_.heartbeat) {
      last_beat = now;
      if (reads) ++silent_beats_;  // else it is the operator's thread that reads and counts
      if (now - last_sent_ >= options_.heartbeat && !has_unsent()) heartbeat_due_ = true;
    }
    pump(lock);
    if (reads && !goodbye_heard_ && is_silent()) (void)lose_silent(lock);
  }
}

Link::Outcome Link::lose(const Lock&, const std::string& what) {
  if (stopping_.load()) return Outcome::Stopped;
  if (!failed_) {
    RE_CHECK(failure_.empty());
    failed_ = true;
    const bool out = role_ == Role::Out;
    failure_ = "link '" + options_.name + (out ? "' to '" : "' from '") + options_.peer + "': " + what + " (after " +
               std::to_string(out ? totals_.records_sent.load() : totals_.records_received.load()) + " records in " +
               std::to_string(out ? totals_.frames_sent.load() : totals_.frames_received.load()) + " frames)";
    (void)::shutdown(fd_, SHUT_RDWR);
    changed_.notify_all();
  }
  return Outcome::Failed;
}

Link::Outcome Link::lose_silent(const Lock& lock) {
  const auto tenths = silent_beats_ * options_.heartbeat.count() / 100;
  return lose(lock, "it said nothing for " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
                        " s; rel.Network(patience=...) says for how long that may be");
}

Link::Outcome Link::refuse(const Lock& lock, FrameFault fault, const FrameHeader& header, const std::string& more) {
  RE_CHECK(fault != FrameFault::None && static_cast<std::size_t>(fault) < kFrameFaults);
  totals_.refused[static_cast<std::size_t>(fault)].fetch_add(1, std::memory_order_relaxed);
  return lose(lock, "rejected a frame, " + std::string(to_string(fault)) + more + ": kind " +
                        std::to_string(static_cast<int>(header.kind)) + ", sequence " + std::to_string(header.sequence) + " where " +
                        std::to_string(receive_sequence_) + " was due, " + std::to_string(header.records) + " records of " +
                        std::to_string(header.record_bytes) + " bytes, " + std::to_string(header.heap_bytes) + " bytes of text");
}

std::string Link::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

bool Link::has_ended() const {
  const Lock lock(mutex_);
  if (role_ == Role::Out) return goodbye_heard_;
  return goodbye_due_ && (output_broken_ || (goodbye_gone_ && !has_unsent()));
}

LinkCounters Link::counters() const noexcept {
  LinkCounters counters;
  counters.frames_sent = totals_.frames_sent.load(std::memory_order_relaxed);
  counters.bytes_sent = totals_.bytes_sent.load(std::memory_order_relaxed);
  counters.records_sent = totals_.records_sent.load(std::memory_order_relaxed);
  counters.frames_received = totals_.frames_received.load(std::memory_order_relaxed);
  counters.bytes_received = totals_.bytes_received.load(std::memory_order_relaxed);
  counters.records_received = totals_.records_received.load(std::memory_order_relaxed);
  counters.credit_waits = totals_.credit_waits.load(std::memory_order_relaxed);
  counters.blocked_nanoseconds = totals_.blocked_nanoseconds.load(std::memory_order_relaxed);
  counters.given = totals_.given.load(std::memory_order_relaxed);
  counters.passed = totals_.passed.load(std::memory_order_relaxed);
  counters.unconsumed_bytes = totals_.unconsumed.load(std::memory_order_relaxed);
  tcp_info said{};
  socklen_t size = sizeof(said);
  if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &said, &size) == 0) counters.retransmits = said.tcpi_total_retrans;
  for (std::size_t i = 0; i < kFrameFaults; ++i) counters.refused[i] = totals_.refused[i].load(std::memory_order_relaxed);
  return counters;
}

}  // namespace rayelastic
