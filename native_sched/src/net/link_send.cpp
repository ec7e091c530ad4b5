// What a link sends, in which order, and when. Everything under the link's mutex with sends that never block.
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/link.hpp"

namespace rayelastic {

// The service thread's wake-up sends what is there; a frame that got full before is sent by the operator's thread itself.
// So an idle link sends single runs at once, and a busy one gathers without any waiting time.
template <typename Done>
Link::Outcome Link::wait_until(Lock& lock, Done done) {
  pump(lock);
  if (!done() && !state_.has_failed() && !stopping_.load()) {
    const auto since = Clock::now();
    if (needs_service()) wake_up_.signal();
    changed_.wait(lock, [&]() REL_HELD(mutex_) { return done() || state_.has_failed() || stopping_.load(); });
    const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since);
    totals_.blocked_nanoseconds.add(static_cast<std::uint64_t>(waited.count()));
  }
  if (stopping_.load()) return Outcome::Stopped;
  return state_.has_failed() ? Outcome::Failed : Outcome::Ok;
}

Link::Outcome Link::send(const std::byte* records, std::size_t count) {
  Lock lock(mutex_);
  if (outbox_.has_mark()) {  // a mark stays where it was put
    const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return !outbox_.has_mark(); });
    if (outcome != Outcome::Ok) return outcome;
  }
  std::size_t done = 0;
  while (true) {
    if (stopping_.load()) return Outcome::Stopped;
    if (state_.has_failed()) return Outcome::Failed;
    FrameBody::Append append;
    done += outbox_.append(records + done * schema_->record_size(), count - done, append);
    if (append == FrameBody::Append::TooLarge) {
      throw std::length_error("a tuple has more text than can go from one PE to another (" + std::to_string(options_.most_text) +
                              " bytes). Cut it into several tuples, or pin the two operators to one PE");
    }
    if (append == FrameBody::Append::Taken) break;
    const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return !outbox_.has_records(); });
    if (outcome != Outcome::Ok) return outcome;
  }
  RE_CHECK(done == count);
  const bool announce = (outbox_.has_records() && !announced_) || needs_service();
  announced_ = outbox_.has_records();
  totals_.given.add(count);
  lock.unlock();
  if (announce) wake_up_.signal();
  return Outcome::Ok;
}

Link::Outcome Link::send(Mark mark) {
  Lock lock(mutex_);
  const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return !outbox_.has_records() && !outbox_.has_mark(); });
  if (outcome != Outcome::Ok) return outcome;
  RE_CHECK(!state_.owes_goodbye());
  outbox_.put(mark);
  totals_.given.add(1);
  pump(lock);
  lock.unlock();
  wake_up_.signal();
  return Outcome::Ok;
}

Link::Outcome Link::finish() {
  if (const Outcome outcome = send(Mark{MarkKind::Final, 0}); outcome != Outcome::Ok) return outcome;
  Lock lock(mutex_);
  RE_CHECK(!outbox_.has_records());
  state_.owe_goodbye();
  return wait_until(lock, [this]() REL_HELD(mutex_) { return state_.has_received_goodbye(); });
}

Link::Outcome Link::say_goodbye() {
  Lock lock(mutex_);
  state_.owe_goodbye();
  const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return has_said_goodbye(); });
  return outcome == Outcome::Ok ? Outcome::End : outcome;
}

// Of a receiving side, where the peer's goodbye has come: if the peer can't read ours any more, nothing is lost on this side.
bool Link::has_said_goodbye() const noexcept {
  return state_.owes_goodbye() && (state_.is_output_broken() || (state_.has_sent_goodbye() && !has_unsent()));
}

void Link::consumed(std::size_t bytes) {
  const Lock lock(mutex_);
  if (grants_.consume(bytes)) grant(lock);
}

void Link::grant(const Lock& lock) {
  if (!grants_.grant()) return;
  pump(lock);
  if (needs_service()) wake_up_.signal();
}

void Link::starve() {
  if (credit_.starve()) {
    totals_.credit_waits.add(1);
    heartbeat_due_ = true;  // a receiver that has consumed everything before it grants what there is
  }
}

std::size_t Link::room() {
  const Lock lock(mutex_);
  if (credit_.has_room()) return std::max<std::size_t>(outbox_.free_bytes(), 1);
  if (credit_.is_open() && !credit_.is_starved()) {  // the caller has records and doesn't wait here
    starve();
    pump(lock);
    if (needs_service()) wake_up_.signal();
  }
  return 0;
}

void Link::pump(const Lock& lock) {
  while (!state_.is_output_broken() && !stopping_.load() && !state_.has_failed() && (has_unsent() || choose_frame())) {
    const std::array<iovec, 3> parts = writer_.unsent(options_.frame_bytes);  // Unix sockets get slow with more than 64 KiB (findings 5)
    const ssize_t sent = socket_.send(parts);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      state_.break_output();
      // A receiving side may still have everything up to the goodbye in its socket: its reading thread will find out.
      if (state_.is_out() && !state_.has_received_goodbye()) (void)lose(lock, socket_.loss_of(errno));
      changed_.notify_all();
      return;
    }
    last_sent_ = Clock::now();
    writer_.advance(static_cast<std::size_t>(sent));
    totals_.bytes_sent.add(static_cast<std::uint64_t>(sent));
    if (!has_unsent()) {
      totals_.frames_sent.add(1);
      if (state_.has_sent_goodbye()) changed_.notify_all();
    }
  }
}

// Control first, so that it never waits for credit; then records, then the mark that was put behind them, then the goodbye.
bool Link::choose_frame() {
  RE_CHECK(!has_unsent());
  if (state_.has_sent_goodbye()) return false;
  if (std::exchange(heartbeat_due_, false)) {
    begin_frame({.kind = FrameKind::Heartbeat});
  } else if (state_.take_hello()) {
    begin_frame({.kind = FrameKind::Hello,
                 .record_bytes = static_cast<std::uint32_t>(schema_->record_size()),
                 .value = static_cast<std::int64_t>(fingerprint(*schema_))});
  } else if (grants_.is_due()) {
    begin_frame({.kind = FrameKind::Credit, .value = static_cast<std::int64_t>(grants_.take_due())});
  } else if (outbox_.has_rest()) {
    begin_body();
  } else if (outbox_.has_records()) {
    if (!credit_.allows(outbox_.frame_bytes())) {
      starve();
      if (!std::exchange(heartbeat_due_, false)) return false;
      begin_frame({.kind = FrameKind::Heartbeat});
      return true;
    }
    credit_.feed();
    announced_ = false;
    outbox_.seal();
    begin_body();
    changed_.notify_all();
  } else if (outbox_.has_mark()) {
    const Mark mark = outbox_.take_mark();
    begin_frame({.kind = FrameKind::Mark, .detail = static_cast<std::uint8_t>(mark.kind), .value = mark.value});
    changed_.notify_all();
  } else if (state_.owes_goodbye()) {
    state_.send_goodbye();
    begin_frame({.kind = FrameKind::Goodbye});
  } else {
    return false;
  }
  return true;
}

void Link::begin_body() {
  const Outbox::Frame frame = outbox_.next_frame(options_.max_frame_bytes);
  totals_.records_sent.add(frame.header.records);
  begin_frame(frame.header, frame.records, frame.text);
  RE_CHECK(state_.is_out());
  credit_.spend(writer_.bytes());
}

void Link::begin_frame(const FrameHeader& header, std::span<const std::byte> records, std::span<const char> text) {
  writer_.begin(header, records, text, options_.checksum && !socket_.is_encrypted());  // TLS proves each record, which is more
  RE_ASSERT(writer_.is_sound(limits()));
}

}  // namespace rayelastic
