// What a link receives: headers checked before anything is allocated, bodies before anything of them is used.
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/link.hpp"

namespace rayelastic {

void Link::count_bytes(std::size_t bytes) noexcept {
  silence_.end();
  totals_.bytes_received.add(bytes);
}

void Link::accept_frame() noexcept {
  reader_.accept();
  totals_.frames_received.add(1);
}

// ---- the sending side: credits, heartbeats and the last goodbye, read by the service thread ----

void Link::read_control() {
  while (true) {
    const iovec rest = reader_.rest();
    const ssize_t got = socket_.receive({&rest, 1});
    const Lock lock(mutex_);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) (void)lose(lock, socket_.loss_of(errno));
      return;
    }
    if (got == 0) {
      (void)lose(lock, socket_.loss_of(0));
      return;
    }
    count_bytes(static_cast<std::size_t>(got));
    reader_.fill(static_cast<std::size_t>(got));
    if (!reader_.is_whole()) continue;

    FrameHeader header;
    FrameFault fault = reader_.take(header);
    if (fault == FrameFault::None) fault = take_control(header);
    if (fault != FrameFault::None) {
      (void)refuse(lock, fault, header);
      return;
    }
    accept_frame();
    if (state_.has_received_goodbye()) {
      changed_.notify_all();
      return;
    }
  }
}

FrameFault Link::take_control(const FrameHeader& header) {
  if (has_body(header.kind) || header.kind == FrameKind::Mark) return FrameFault::Order;
  if (const FrameFault fault = reader_.check_order(header, *schema_); fault != FrameFault::None) return fault;
  if (header.kind == FrameKind::Credit) {
    if (!credit_.grant(static_cast<std::uint64_t>(header.value), options_.most_ahead)) return FrameFault::Credit;
    outbox_.aim(std::min(options_.frame_bytes, credit_.best_frame()));
  }
  if (header.kind == FrameKind::Goodbye) {
    if (!state_.has_sent_goodbye()) return FrameFault::Order;
    state_.receive_goodbye();
    credit_.settle();
  }
  return FrameFault::None;
}

// ---- the receiving side, read by the operator's thread ----

Link::Outcome Link::receive(Received& received) {
  silence_.restart();  // while nobody read, nothing could be seen
  received.bytes = 0;
  while (true) {
    FrameHeader header;
    FrameFault fault = FrameFault::None;
    if (const Outcome outcome = read_header(header, fault); outcome != Outcome::Ok) return outcome;
    if (fault == FrameFault::None) fault = take_in_order(header);
    if (fault != FrameFault::None) {
      const Lock lock(mutex_);
      return refuse(lock, fault, header);
    }
    received.header = header;
    received.records = nullptr;
    received.heap = ChunkRef();
    if (has_body(header.kind)) {
      received.bytes += header.frame_bytes();
      const Outcome outcome = header.kind == FrameKind::Text ? read_text(header) : read_records(header, received);
      if (outcome != Outcome::Ok) return outcome;
    }
    accept_frame();
    if (header.kind == FrameKind::Records || header.kind == FrameKind::Mark) return Outcome::Ok;
    RE_CHECK(reader_.has_hello() || header.kind == FrameKind::Heartbeat);
    if (header.kind == FrameKind::Goodbye) return say_goodbye();
    if (header.kind == FrameKind::Heartbeat) {  // the sender may wait for credit, and downstream has accepted all that came before
      const Lock lock(mutex_);
      grant(lock);
    }
  }
}

FrameFault Link::take_in_order(const FrameHeader& header) {
  if (header.kind == FrameKind::Credit) return FrameFault::Order;
  if (const FrameFault fault = body_.check_order(header); fault != FrameFault::None) return fault;
  if (const FrameFault fault = reader_.check_order(header, *schema_); fault != FrameFault::None) return fault;
  if (header.kind == FrameKind::Goodbye && !reader_.has_final()) return FrameFault::Order;
  if (has_body(header.kind)) {
    const Lock lock(mutex_);
    grants_.receive(header.frame_bytes());
  }
  return FrameFault::None;
}

Link::Outcome Link::read_header(FrameHeader& header, FrameFault& fault) {
  while (!reader_.is_whole()) {
    iovec rest = reader_.rest();
    std::size_t got = 0;
    if (const Outcome outcome = read_parts({&rest, 1}, got); outcome != Outcome::Ok) return outcome;
    reader_.fill(got);
  }
  fault = reader_.take(header);
  return Outcome::Ok;
}

Link::Outcome Link::read_text(const FrameHeader& header) {
  if (const Outcome outcome = read_body(header, nullptr, body_.begin_text(header)); outcome != Outcome::Ok) return outcome;
  body_.finish_text(header);
  return Outcome::Ok;
}

Link::Outcome Link::read_records(const FrameHeader& header, Received& received) {
  char* const text = body_.begin_records(header);
  if (const Outcome outcome = read_body(header, body_.records(), text); outcome != Outcome::Ok) return outcome;
  std::size_t bad_record = 0;
  const FrameFault fault = link_views(*schema_, body_.records(), header.records, body_.text(), bad_record);
  if (fault != FrameFault::None) {
    const Lock lock(mutex_);
    return refuse(lock, fault, header, " (record " + std::to_string(bad_record) + ")");
  }
  RE_CHECK(header.record_bytes == schema_->record_size());
  received.heap = body_.take_text();
  received.records = body_.records();
  totals_.records_received.add(header.records);
  return Outcome::Ok;
}

// A body and, in the same call, as much of the next header as is there: one system call a frame.
Link::Outcome Link::read_body(const FrameHeader& header, std::byte* records, char* text) {
  const std::size_t records_bytes = std::size_t{header.records} * header.record_bytes;
  std::array<iovec, 3> parts{iovec{records, records_bytes}, iovec{text, header.heap_bytes}, reader_.rest()};
  std::size_t missing = header.body_bytes();
  while (missing > 0) {
    std::size_t got = 0;
    if (const Outcome outcome = read_parts(parts, got); outcome != Outcome::Ok) return outcome;
    reader_.fill(got > missing ? got - missing : 0);
    missing -= std::min(missing, got);
    skip(parts, got);
  }
  if (!header.checksummed || checksum_of(header, {records, records_bytes}, {text, header.heap_bytes}) == header.checksum)
    return Outcome::Ok;
  const Lock lock(mutex_);
  return refuse(lock, FrameFault::Checksum, header);
}

// At least one byte into the parts, or why not.
Link::Outcome Link::read_parts(std::span<iovec> parts, std::size_t& got) {
  while (true) {
    if (stopping_.load()) return Outcome::Stopped;
    // The socket waits for a heartbeat's time at most (open): the silence is counted here, in one system call a frame.
    const ssize_t count = socket_.wait_for_bytes(parts);
    if (count > 0) {
      got = static_cast<std::size_t>(count);
      count_bytes(got);
      return Outcome::Ok;
    }
    const int error = count < 0 ? errno : 0;
    if (error == EINTR) continue;
    const bool nothing_yet = error == EAGAIN || error == EWOULDBLOCK;
    if (nothing_yet) silence_.wait();
    if (nothing_yet && !silence_.is_too_long()) continue;
    const Lock lock(mutex_);
    return nothing_yet ? lose_silent(lock) : lose(lock, socket_.loss_of(error));
  }
}

}  // namespace rayelastic
