#include "rayelastic/net/link.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

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
  std::shared_ptr<Link> link(new Link(fd, std::move(options), std::move(tls)));
  link->service_ = std::jthread([link = link.get()](const std::stop_token& end) { link->serve(end); });
  return link;
}

Link::Link(int fd, LinkOptions options, std::shared_ptr<Tls> tls)
    : options_(std::move(options)),
      socket_(fd, std::move(tls)),
      wake_up_("link '" + options_.name + "'"),
      silence_(options_.heartbeat, options_.silence, options_.first_silence) {
  check(options_);
}

Link::~Link() {
  service_.request_stop();
  interrupt();
}

void Link::interrupt() noexcept {
  {
    const Lock lock(mutex_);  // so that a waiting thread has either seen the flag or gets the notification
    stopping_.store(true);
  }
  socket_.shut_down();
  changed_.notify_all();
  wake_up_.signal();
}

void Link::open(LinkState::Side side, std::shared_ptr<const Schema> schema) {
  {
    const Lock lock(mutex_);
    if (state_.is_open()) throw std::logic_error("link '" + options_.name + "' is already used by an operator");
    schema_ = std::move(schema);
    if (schema_->record_size() > options_.max_frame_bytes / 2)
      throw std::invalid_argument("link '" + options_.name + "': a record has no room in a frame");
    if (side == LinkState::Side::Out) {
      reader_.open({.max_frame_bytes = options_.max_frame_bytes});
      outbox_.open(schema_, options_.frame_bytes, options_.most_text);
      outbox_.aim(std::min(options_.frame_bytes, credit_.best_frame()));  // before the first credit comes
    } else {
      reader_.open(limits());
      grants_.open(options_.window_bytes);
      if (!socket_.set_patience(options_.heartbeat))  // how often a waiting receive looks at the time
        throw std::system_error(errno, std::generic_category(), "link '" + options_.name + "'");
    }
    state_.open(side);  // heartbeats may have been sent before
  }
  wake_up_.signal();
}

void Link::open_out(std::shared_ptr<const Schema> schema) { open(LinkState::Side::Out, std::move(schema)); }
void Link::open_in(std::shared_ptr<const Schema> schema) { open(LinkState::Side::In, std::move(schema)); }

FrameLimits Link::limits() const noexcept {
  return {.max_frame_bytes = options_.max_frame_bytes,
          .most_text = options_.most_text,
          .record_bytes = schema_ == nullptr ? 0 : static_cast<std::uint32_t>(schema_->record_size())};
}

// The receiving side's thread sends only: it never reads, so that P08's thread alone owns what comes in.
void Link::serve(const std::stop_token& end) {
  auto last_beat = Clock::now();
  bool hung = false;  // poll reports a hang-up whether asked or not; looking again and again would burn a core
  while (!end.stop_requested()) {
    pollfd fds[2] = {{socket_.fd(), 0, 0}, {wake_up_.fd(), POLLIN, 0}};
    bool reads;
    {
      const Lock lock(mutex_);
      const bool ended = state_.has_failed() || stopping_.load();
      reads = state_.is_out() && !state_.has_received_goodbye() && !ended;
      if (reads) fds[0].events |= POLLIN;
      watched_ = has_unsent() && !state_.is_output_broken();
      if (watched_) fds[0].events |= POLLOUT;
      if (ended || (hung && !reads)) fds[0].fd = -1;
    }
    if (::poll(fds, 2, static_cast<int>(options_.heartbeat.count())) < 0 && errno != EINTR) break;
    if ((fds[1].revents & POLLIN) != 0) wake_up_.clear();
    hung = hung || (fds[0].revents & (POLLHUP | POLLERR)) != 0;
    if (reads && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_control();

    const Lock lock(mutex_);
    if (const auto now = Clock::now(); now - last_beat >= options_.heartbeat) {
      last_beat = now;
      if (reads) silence_.wait();  // else it is the operator's thread that reads and counts
      if (now - last_sent_ >= options_.heartbeat && !has_unsent()) heartbeat_due_ = true;
    }
    pump(lock);
    if (reads && !state_.has_received_goodbye() && silence_.is_too_long()) (void)lose_silent(lock);
  }
}

Link::Outcome Link::lose(const Lock&, const std::string& what) {
  if (stopping_.load()) return Outcome::Stopped;
  if (!state_.has_failed()) {
    const bool out = state_.is_out();
    state_.fail("link '" + options_.name + (out ? "' to '" : "' from '") + options_.peer + "': " + what + " (after " +
                std::to_string(out ? totals_.records_sent.get() : totals_.records_received.get()) + " records in " +
                std::to_string(out ? totals_.frames_sent.get() : totals_.frames_received.get()) + " frames)");
    socket_.shut_down();
    changed_.notify_all();
  }
  return Outcome::Failed;
}

Link::Outcome Link::lose_silent(const Lock& lock) {
  const auto tenths = silence_.length().count() / 100;
  return lose(lock, "it said nothing for " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
                        " s; rel.Network(patience=...) says for how long that may be");
}

Link::Outcome Link::refuse(const Lock& lock, FrameFault fault, const FrameHeader& header, const std::string& more) {
  RE_CHECK(fault != FrameFault::None && static_cast<std::size_t>(fault) < kFrameFaults);
  totals_.refused[static_cast<std::size_t>(fault)].add(1);
  return lose(lock, "rejected a frame, " + std::string(to_string(fault)) + more + ": kind " +
                        std::to_string(static_cast<int>(header.kind)) + ", sequence " + std::to_string(header.sequence) + " where " +
                        std::to_string(reader_.sequence()) + " was due, " + std::to_string(header.records) + " records of " +
                        std::to_string(header.record_bytes) + " bytes, " + std::to_string(header.heap_bytes) + " bytes of text");
}

std::string Link::failure() const {
  const Lock lock(mutex_);
  return state_.failure();
}

bool Link::has_ended() const {
  const Lock lock(mutex_);
  return state_.is_out() ? state_.has_received_goodbye() : has_said_goodbye();
}

LinkCounters Link::counters() const noexcept {
  LinkCounters counters = totals_.read();
  counters.retransmits = socket_.retransmits();
  const Lock lock(mutex_);
  counters.unconsumed_bytes = credit_.outstanding() + grants_.outstanding();  // a link has one side
  return counters;
}

}  // namespace rayelastic
