// What a link receives: headers checked before anything is allocated, bodies before anything of them is used.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "rayelastic/assert.hpp"

#include "rayelastic/net/link.hpp"

namespace rayelastic {

namespace {

constexpr const char* kNoGoodbye = "it closed the connection without a goodbye; its process ended or failed";

}  // namespace

// Whether a peer that closes shows as an end or as a reset depends on what it had left unread.
std::string Link::loss_of(int error) const {
  if (error == ECONNRESET || error == EPIPE) return kNoGoodbye;
  return "the connection broke: " + (error == EPROTO && tls_ ? tls_->error() : std::generic_category().message(error));
}

FrameFault Link::compare_schemas(const FrameHeader& hello) const noexcept {
  const bool same = hello.record_bytes == schema_->record_size() && static_cast<std::uint64_t>(hello.value) == fingerprint(*schema_);
  return same ? FrameFault::None : FrameFault::Schema;
}

// ---- the sending side: credits, heartbeats and the last goodbye, read by the service thread ----

void Link::read_control() {
  while (true) {
    const iovec part{next_header_.data() + next_header_bytes_, kFrameHeaderBytes - next_header_bytes_};
    const ssize_t got = tls_ ? tls_->receive({&part, 1}) : ::recv(fd_, part.iov_base, part.iov_len, MSG_DONTWAIT);
    const Lock lock(mutex_);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) (void)lose(lock, loss_of(errno));
      return;
    }
    if (got == 0) {
      (void)lose(lock, kNoGoodbye);
      return;
    }
    silent_beats_ = 0;
    heard_ = true;
    totals_.bytes_received.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
    next_header_bytes_ += static_cast<std::size_t>(got);
    RE_CHECK(next_header_bytes_ <= kFrameHeaderBytes);
    if (next_header_bytes_ < kFrameHeaderBytes) continue;
    next_header_bytes_ = 0;

    FrameHeader header;
    const FrameLimits limits{.max_frame_bytes = options_.max_frame_bytes, .sequence = receive_sequence_};
    FrameFault fault = decode_header(next_header_, limits, header);
    if (fault == FrameFault::None) fault = take_control(header);
    if (fault != FrameFault::None) {
      (void)refuse(lock, fault, header);
      return;
    }
    ++receive_sequence_;
    totals_.frames_received.fetch_add(1, std::memory_order_relaxed);
    if (goodbye_heard_) {
      changed_.notify_all();
      return;
    }
  }
}

FrameFault Link::take_control(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::Heartbeat:
      return FrameFault::None;
    case FrameKind::Hello: {
      if (hello_heard_) return FrameFault::Order;
      hello_heard_ = true;
      return compare_schemas(header);
    }
    case FrameKind::Credit: {
      if (!hello_heard_) return FrameFault::Order;
      const auto granted = static_cast<std::uint64_t>(header.value);
      if (window_ == 0) {
        window_ = granted;
        granted_at_ = Clock::now();
        keep_ahead(0);
        return FrameFault::None;
      }
      if (granted > outstanding_) return FrameFault::Credit;
      RE_CHECK(window_ > 0);
      outstanding_ -= granted;
      learn(granted);
      totals_.unconsumed.store(outstanding_, std::memory_order_relaxed);
      return FrameFault::None;
    }
    case FrameKind::Goodbye: {
      if (!goodbye_gone_) return FrameFault::Order;
      goodbye_heard_ = true;
      outstanding_ = 0;
      totals_.unconsumed.store(0, std::memory_order_relaxed);
      return FrameFault::None;
    }
    case FrameKind::Records:
    case FrameKind::Text:
    case FrameKind::Mark:
      return FrameFault::Order;
  }
  return FrameFault::Kind;
}

// ---- the receiving side, read by the operator's thread ----

Link::Outcome Link::receive(Received& received) {
  silent_beats_ = 0;  // while nobody read, nothing could be heard
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
    ++receive_sequence_;
    totals_.frames_received.fetch_add(1, std::memory_order_relaxed);
    if (header.kind == FrameKind::Records || header.kind == FrameKind::Mark) return Outcome::Ok;
    RE_CHECK(hello_heard_ || header.kind == FrameKind::Heartbeat);
    if (header.kind == FrameKind::Goodbye) return say_goodbye();
    if (header.kind == FrameKind::Heartbeat) {  // the sender may wait for credit, and all that came before has been taken
      const Lock lock(mutex_);
      grant(lock);
    }
  }
}

FrameFault Link::take_in_order(const FrameHeader& header) {
  if (text_filled_ > 0 && header.kind != FrameKind::Heartbeat) {  // the records that it belongs to come next, and all of it
    const std::size_t whole = text_->size(), filled = text_filled_ + header.heap_bytes;
    if (!has_body(header.kind)) return FrameFault::Order;
    if (header.kind == FrameKind::Records ? filled != whole : filled >= whole || static_cast<std::size_t>(header.value) != whole)
      return FrameFault::Field;
  }
  switch (header.kind) {
    case FrameKind::Heartbeat:
      return FrameFault::None;
    case FrameKind::Hello: {
      if (hello_heard_) return FrameFault::Order;
      hello_heard_ = true;
      return compare_schemas(header);
    }
    case FrameKind::Records:
    case FrameKind::Text: {
      if (!hello_heard_ || final_heard_) return FrameFault::Order;
      const Lock lock(mutex_);
      outstanding_ += header.frame_bytes();
      totals_.unconsumed.store(outstanding_, std::memory_order_relaxed);
      return FrameFault::None;
    }
    case FrameKind::Mark: {
      if (!hello_heard_ || final_heard_) return FrameFault::Order;
      final_heard_ = header.detail == static_cast<std::uint8_t>(MarkKind::Final);
      return FrameFault::None;
    }
    case FrameKind::Goodbye:
      return final_heard_ ? FrameFault::None : FrameFault::Order;
    case FrameKind::Credit:
      return FrameFault::Order;
  }
  return FrameFault::Kind;
}

Link::Outcome Link::read_header(FrameHeader& header, FrameFault& fault) {
  while (next_header_bytes_ < kFrameHeaderBytes) {
    iovec part{next_header_.data() + next_header_bytes_, kFrameHeaderBytes - next_header_bytes_};
    std::size_t got = 0;
    if (const Outcome outcome = read_parts({&part, 1}, got); outcome != Outcome::Ok) return outcome;
    next_header_bytes_ += got;
    RE_CHECK(next_header_bytes_ <= kFrameHeaderBytes);
  }
  next_header_bytes_ = 0;
  const FrameLimits limits{.max_frame_bytes = options_.max_frame_bytes,
                           .most_text = options_.most_text,
                           .sequence = receive_sequence_,
                           .record_bytes = static_cast<std::uint32_t>(schema_->record_size())};
  fault = decode_header(next_header_, limits, header);
  return Outcome::Ok;
}

// What goes ahead of records. Memory for all of the text is allocated once the first piece of it has turned out to be whole.
Link::Outcome Link::read_text(const FrameHeader& header) {
  ChunkRef first;
  if (text_filled_ == 0) first = Chunk::allocate(header.heap_bytes);
  char* const place = first ? first->data() : text_->data() + text_filled_;
  if (const Outcome outcome = read_body(header, nullptr, place); outcome != Outcome::Ok) return outcome;
  if (first) {
    text_ = Chunk::allocate(static_cast<std::size_t>(header.value));
    std::memcpy(text_->data(), first->data(), header.heap_bytes);
  }
  text_filled_ += header.heap_bytes;
  RE_CHECK(text_filled_ < text_->size());  // the rest comes with the records
  return Outcome::Ok;
}

Link::Outcome Link::read_records(const FrameHeader& header, Received& received) {
  const std::size_t records_bytes = std::size_t{header.records} * header.record_bytes;
  if (records_bytes > body_capacity_) {
    body_.reset(new std::byte[records_bytes]);
    body_capacity_ = records_bytes;
  }
  if (text_filled_ == 0 && header.heap_bytes > 0) text_ = Chunk::allocate(header.heap_bytes);
  const std::span<char> text = text_ ? std::span(text_->data(), text_->size()) : std::span<char>{};
  RE_CHECK(text_filled_ + header.heap_bytes == text.size() && records_bytes <= body_capacity_);
  if (const Outcome outcome = read_body(header, body_.get(), text.data() + text_filled_); outcome != Outcome::Ok) return outcome;
  std::size_t bad_record = 0;
  if (const FrameFault fault = link_views(*schema_, body_.get(), header.records, text, bad_record); fault != FrameFault::None) {
    const Lock lock(mutex_);
    return refuse(lock, fault, header, " (record " + std::to_string(bad_record) + ")");
  }
  RE_CHECK(records_bytes == header.records * schema_->record_size());
  received.heap = std::exchange(text_, ChunkRef());
  text_filled_ = 0;
  received.records = body_.get();
  totals_.records_received.fetch_add(header.records, std::memory_order_relaxed);
  return Outcome::Ok;
}

// A body and, in the same call, as much of the next header as is there: one system call a frame.
Link::Outcome Link::read_body(const FrameHeader& header, std::byte* records, char* text) {
  const std::size_t records_bytes = std::size_t{header.records} * header.record_bytes;
  std::array<iovec, 3> parts{iovec{records, records_bytes}, iovec{text, header.heap_bytes},
                             iovec{next_header_.data(), next_header_.size()}};
  std::size_t missing = header.body_bytes();
  while (missing > 0) {
    std::size_t got = 0;
    if (const Outcome outcome = read_parts(parts, got); outcome != Outcome::Ok) return outcome;
    next_header_bytes_ += got > missing ? got - missing : 0;
    missing -= std::min(missing, got);
    for (iovec& part : parts) {
      const std::size_t filled = std::min(got, part.iov_len);
      part = {static_cast<char*>(part.iov_base) + filled, part.iov_len - filled};
      got -= filled;
    }
  }
  if (!header.checksummed || checksum_of(header, {records, records_bytes}, {text, header.heap_bytes}) == header.checksum)
    return Outcome::Ok;
  const Lock lock(mutex_);
  return refuse(lock, FrameFault::Checksum, header);
}

// As recvmsg: bytes, 0 at the end, or -1 and errno; EAGAIN when nothing came for a heartbeat's time.
ssize_t Link::wait_for_bytes(std::span<iovec> parts) {
  if (tls_ == nullptr) {
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return ::recvmsg(fd_, &message, 0);
  }
  while (true) {
    const ssize_t count = tls_->receive(parts);
    if (count >= 0 || errno != EAGAIN) return count;
    pollfd readable{fd_, POLLIN, 0};
    const int ready = ::poll(&readable, 1, static_cast<int>(options_.heartbeat.count()));
    if (ready > 0) continue;  // perhaps a part of a record only
    if (ready == 0) errno = EAGAIN;
    return -1;
  }
}

// At least one byte into the parts, or why not.
Link::Outcome Link::read_parts(std::span<iovec> parts, std::size_t& got) {
  while (true) {
    if (stopping_.load()) return Outcome::Stopped;
    // The socket waits for a heartbeat's time at most (open): the silence is counted here, in one system call a frame.
    const ssize_t count = wait_for_bytes(parts);
    if (count > 0) {
      silent_beats_ = 0;
      heard_ = true;
      totals_.bytes_received.fetch_add(static_cast<std::uint64_t>(count), std::memory_order_relaxed);
      got = static_cast<std::size_t>(count);
      return Outcome::Ok;
    }
    const int error = errno;
    if (count < 0 && error == EINTR) continue;
    const bool nothing_yet = count < 0 && (error == EAGAIN || error == EWOULDBLOCK);
    silent_beats_ += nothing_yet ? 1 : 0;
    if (nothing_yet && !is_silent()) continue;
    const Lock lock(mutex_);
    if (count == 0) return lose(lock, kNoGoodbye);
    if (nothing_yet) return lose_silent(lock);
    return lose(lock, loss_of(error));
  }
}

}  // namespace rayelastic
