// What a link sends, in which order, and when. Everything under the link's mutex with sends that never block.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>

#include "rayelastic/assert.hpp"

#include "rayelastic/net/link.hpp"

namespace rayelastic {

namespace {

constexpr std::chrono::milliseconds kGrantPeriod{1};
constexpr std::uint64_t kLeastAhead = 1024;
constexpr std::uint64_t kTrust = 8;       // it may be ahead by one part in so many of what has been taken
constexpr std::size_t kLeastFrame = 256;  // one record, if that is larger

}  // namespace

// The service thread's wake-up sends what is there; a frame that got full before is sent by the operator's thread itself.
// So an idle link sends single runs at once, and a busy one gathers without any waiting time.
template <typename Done>
Link::Outcome Link::wait_until(Lock& lock, Done done) {
  pump(lock);
  if (!done() && !failed_ && !stopping_.load()) {
    const auto since = Clock::now();
    if (has_unsent() && !watched_) wake();  // the service thread has to wait for room in the socket
    changed_.wait(lock, [&]() REL_HELD(mutex_) { return done() || failed_ || stopping_.load(); });
    const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since);
    totals_.blocked_nanoseconds.fetch_add(static_cast<std::uint64_t>(waited.count()), std::memory_order_relaxed);
  }
  if (stopping_.load()) return Outcome::Stopped;
  return failed_ ? Outcome::Failed : Outcome::Ok;
}

Link::Outcome Link::send(const std::byte* records, std::size_t count) {
  Lock lock(mutex_);
  if (mark_due_) {  // a mark stays where it was put
    if (const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return !mark_due_; }); outcome != Outcome::Ok) return outcome;
  }
  std::size_t done = 0;
  while (true) {
    if (stopping_.load()) return Outcome::Stopped;
    if (failed_) return Outcome::Failed;
    FrameBody::Append append;
    done += open_->append(records + done * schema_->record_size(), count - done, append);
    if (append == FrameBody::Append::TooLarge) {
      throw std::length_error("a tuple has more text than can go from one PE to another (" + std::to_string(options_.most_text) +
                              " bytes). Cut it into several tuples, or pin the two operators to one PE");
    }
    if (append == FrameBody::Append::Taken) break;
    if (const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return open_->empty(); }); outcome != Outcome::Ok)
      return outcome;
  }
  RE_CHECK(done == count);
  const bool tell = (!open_->empty() && !told_) || (has_unsent() && !watched_);
  told_ = !open_->empty();
  totals_.given.fetch_add(count, std::memory_order_relaxed);
  lock.unlock();
  if (tell) wake();
  return Outcome::Ok;
}

Link::Outcome Link::send(Mark mark) {
  Lock lock(mutex_);
  const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return open_->empty() && !mark_due_; });
  if (outcome != Outcome::Ok) return outcome;
  RE_CHECK(open_->empty() && !mark_due_ && !goodbye_due_);  // a mark stands behind all records
  mark_ = mark;
  mark_due_ = true;
  totals_.given.fetch_add(1, std::memory_order_relaxed);
  pump(lock);
  lock.unlock();
  wake();
  return Outcome::Ok;
}

Link::Outcome Link::finish() {
  if (const Outcome outcome = send(Mark{MarkKind::Final, 0}); outcome != Outcome::Ok) return outcome;
  Lock lock(mutex_);
  RE_CHECK(open_->empty());
  goodbye_due_ = true;
  return wait_until(lock, [this]() REL_HELD(mutex_) { return goodbye_heard_; });
}

Link::Outcome Link::say_goodbye() {
  Lock lock(mutex_);
  goodbye_due_ = true;
  // The peer's goodbye is here: if it can't take ours any more, nothing is lost on this side.
  const Outcome outcome = wait_until(lock, [this]() REL_HELD(mutex_) { return output_broken_ || (goodbye_gone_ && !has_unsent()); });
  return outcome == Outcome::Ok ? Outcome::End : outcome;
}

// A busy receiver grants in quarters of the window, for a Credit costs a system call; but a slow one at least once in kGrantPeriod, and
// everything when it hears that the sender waits (receive). So what isn't granted yet never keeps the sender waiting for long.
void Link::consumed(std::size_t bytes) {
  const Lock lock(mutex_);
  consumed_ += bytes;
  if (consumed_ >= options_.window_bytes / 4 || Clock::now() - granted_at_ >= kGrantPeriod) grant(lock);
}

void Link::grant(const Lock& lock) {
  if (consumed_ == 0) return;
  granted_at_ = Clock::now();
  grant_due_ += consumed_;
  consumed_ = 0;
  pump(lock);
  if (has_unsent() && !watched_) wake();
}

// How fast the receiver works is known only while it had something to do all the time: when the sender waited for it. At first it is as
// fast as its own queues are filled, which says nothing of what is behind them: so what is ahead grows with what has been taken.
void Link::learn(std::uint64_t granted) {
  taken_ += granted;
  const auto now = Clock::now();
  const std::chrono::duration<double> took = now - granted_at_;
  granted_at_ = now;
  if (!starved_ || took.count() <= 0) return;
  const std::chrono::duration<double> most = options_.most_ahead;
  const double wanted = static_cast<double>(granted) / took.count() * most.count();
  const double now_ahead = static_cast<double>(ahead_);
  keep_ahead(static_cast<std::uint64_t>(std::clamp(wanted, now_ahead / 2, now_ahead * 2)));
}

void Link::keep_ahead(std::uint64_t bytes) noexcept {
  const std::uint64_t least = std::min(kLeastAhead, window_);
  ahead_ = std::clamp(bytes, least, std::clamp(taken_ / kTrust, least, window_));
  RE_CHECK(ahead_ <= window_);
  const std::size_t frame = std::min(options_.frame_bytes, std::max(kLeastFrame, static_cast<std::size_t>(ahead_ / 4)));
  open_->aim(frame);
  sealed_->aim(frame);
}

std::size_t Link::room() {
  const Lock lock(mutex_);
  if (window_ > 0 && outstanding_ <= ahead_ / 2) return std::max<std::size_t>(open_->free_bytes(), 1);
  if (window_ > 0 && !starved_) {  // who asks has records and doesn't wait here
    totals_.credit_waits.fetch_add(1, std::memory_order_relaxed);
    starved_ = heartbeat_due_ = true;
    pump(lock);
    if (has_unsent() && !watched_) wake();
  }
  return 0;
}

bool Link::has_credit() const noexcept {
  return window_ > 0 && (outstanding_ <= ahead_ / 2 || outstanding_ + open_->frame_bytes() <= ahead_);
}

void Link::pump(const Lock& lock) {
  while (!output_broken_ && !stopping_.load() && !failed_ && (has_unsent() || choose_frame())) {
    std::array<iovec, 3> parts{iovec{sealed_header_.data(), sealed_header_.size()}, iovec{}, iovec{}};
    parts[1] = {const_cast<std::byte*>(sealed_records_.data()), sealed_records_.size()};
    parts[2] = {const_cast<char*>(sealed_text_.data()), sealed_text_.size()};
    std::size_t skip = sealed_sent_;
    std::size_t room = options_.frame_bytes;  // one send: Unix sockets get slow with more than 64 KiB (findings 5)
    for (iovec& part : parts) {
      const std::size_t skipped = std::min(skip, part.iov_len);
      part = {static_cast<char*>(part.iov_base) + skipped, std::min(part.iov_len - skipped, room)};
      skip -= skipped;
      room -= part.iov_len;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const ssize_t sent = tls_ ? tls_->send(parts) : ::sendmsg(fd_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      output_broken_ = true;
      // A receiving side may still have everything up to the goodbye in its socket: its reading thread will find out.
      if (role_ == Role::Out && !goodbye_heard_) (void)lose(lock, loss_of(errno));
      changed_.notify_all();
      return;
    }
    last_sent_ = Clock::now();
    sealed_sent_ += static_cast<std::size_t>(sent);
    RE_CHECK(tls_ || sealed_sent_ <= sealed_bytes_);
    totals_.bytes_sent.fetch_add(static_cast<std::uint64_t>(sent), std::memory_order_relaxed);
    if (!has_unsent()) {
      totals_.frames_sent.fetch_add(1, std::memory_order_relaxed);
      if (goodbye_gone_) changed_.notify_all();
    }
  }
}

// Control first, so that it never waits for credit; then records, then the mark that was put after them, then the goodbye.
bool Link::choose_frame() {
  RE_CHECK(!has_unsent());
  if (goodbye_gone_) return false;
  if (heartbeat_due_) {
    heartbeat_due_ = false;
    seal({.kind = FrameKind::Heartbeat});
    return true;
  }
  if (hello_due_) {
    hello_due_ = false;
    seal({.kind = FrameKind::Hello,
          .record_bytes = static_cast<std::uint32_t>(schema_->record_size()),
          .value = static_cast<std::int64_t>(fingerprint(*schema_))});
    return true;
  }
  if (grant_due_ > 0) {
    outstanding_ -= std::min(outstanding_, grant_due_);  // the first grant is the window, and nothing came before it
    totals_.unconsumed.store(outstanding_, std::memory_order_relaxed);
    seal({.kind = FrameKind::Credit, .value = static_cast<std::int64_t>(grant_due_)});
    grant_due_ = 0;
    return true;
  }
  if (body_due_) {
    seal_body();
    return true;
  }
  if (open_ != nullptr && !open_->empty()) {
    if (!has_credit()) {
      if (starved_) return false;
      totals_.credit_waits.fetch_add(1, std::memory_order_relaxed);
      starved_ = true;
      seal({.kind = FrameKind::Heartbeat});  // says so: whoever has taken all that is in front of it grants what there is
      return true;
    }
    starved_ = told_ = false;
    RE_CHECK(text_gone_ <= sealed_->heap().size() && !body_due_);
    std::swap(open_, sealed_);
    open_->clear();
    text_gone_ = 0;
    seal_body();
    changed_.notify_all();
    return true;
  }
  if (mark_due_) {
    mark_due_ = false;
    seal({.kind = FrameKind::Mark, .detail = static_cast<std::uint8_t>(mark_.kind), .value = mark_.value});
    changed_.notify_all();
    return true;
  }
  if (goodbye_due_) {
    goodbye_gone_ = true;
    RE_CHECK(!mark_due_ && !body_due_);
    seal({.kind = FrameKind::Goodbye});
    return true;
  }
  return false;
}

// The next frame of sealed_: text that is too much for one goes ahead, piece by piece.
void Link::seal_body() {
  RE_CHECK(sealed_->count() > 0 && text_gone_ <= sealed_->heap().size());
  const std::size_t most = options_.max_frame_bytes / 2;
  const std::span<const char> left = sealed_->heap().subspan(text_gone_);
  body_due_ = left.size() > most && sealed_->frame_bytes() > options_.max_frame_bytes;
  const std::span<const char> text = body_due_ ? left.first(most) : left;
  FrameHeader header{.kind = FrameKind::Text, .heap_bytes = static_cast<std::uint32_t>(text.size())};
  if (body_due_) {
    header.value = static_cast<std::int64_t>(sealed_->heap().size());
    text_gone_ += text.size();
    RE_CHECK(text_gone_ < sealed_->heap().size());  // the rest goes with the records
    seal(header, {}, text);
  } else {
    header.kind = FrameKind::Records;
    header.records = static_cast<std::uint32_t>(sealed_->count());
    header.record_bytes = static_cast<std::uint32_t>(schema_->record_size());
    totals_.records_sent.fetch_add(sealed_->count(), std::memory_order_relaxed);
    seal(header, sealed_->records(), text);
  }
  if (outstanding_ == 0) granted_at_ = Clock::now();  // it had nothing to do until now
  RE_CHECK(role_ == Role::Out && window_ > 0);
  outstanding_ += sealed_bytes_;
  totals_.unconsumed.store(outstanding_, std::memory_order_relaxed);
}

void Link::seal(FrameHeader header, std::span<const std::byte> records, std::span<const char> text) {
  header.sequence = send_sequence_++;
  header.checksummed = options_.checksum && tls_ == nullptr;  // TLS proves each record, which is more
  if (header.checksummed) header.checksum = checksum_of(header, records, text);
  sealed_header_ = encode_header(header);
  sealed_records_ = records;
  sealed_text_ = text;
  sealed_bytes_ = kFrameHeaderBytes + records.size() + text.size();
  sealed_sent_ = 0;
  RE_CHECK(sealed_bytes_ == header.frame_bytes());
  RE_ASSERT(is_sound(header));
}

// Whether the peer takes the frame, by what a header says.
bool Link::is_sound(const FrameHeader& header) const {
  FrameHeader seen;
  const FrameLimits limits{.max_frame_bytes = options_.max_frame_bytes,
                           .most_text = options_.most_text,
                           .sequence = header.sequence,
                           .record_bytes = schema_ == nullptr ? 0 : static_cast<std::uint32_t>(schema_->record_size())};
  return decode_header(sealed_header_, limits, seen) == FrameFault::None && seen.frame_bytes() == header.frame_bytes();
}

}  // namespace rayelastic
