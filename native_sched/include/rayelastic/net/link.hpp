// A stream between two PEs: one authenticated socket that carries runs of records one way and credits the other.
// Architecture section 6; P08 (one thread per PE input port: receive, deserialise, execute); rules D4-D6.
// Knows nothing of handshakes (rayelastic/runtime/port/data_port.py did that), addresses or queues.
//
// Threads: the operator's thread (send or receive, never two at once) and one service thread per link, which sends what is
// there as soon as it can, sends heartbeats, and on the sending side reads credits. Everything that goes out is chosen and
// written under `mutex_` with non-blocking sends; what comes in is touched by one thread only (sending side: service thread,
// receiving side: operator's thread).
// Bounds: the sender holds at most two bodies and the receiver one (frames, but for large texts). On the way (in the kernel, mostly) are at most the window,
// or half of it and one larger frame; and no more than what the receiver takes in `most_ahead`, as the sender learns by how fast credit
// comes back while it waits for some: so a tuple, or a mark, isn't long on its way when downstream is slow. It begins small, for nobody knows yet.
// Nothing waits for ever: a silent or lost peer is a failure.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "rayelastic/assert.hpp"
#include "rayelastic/mutex.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/net/tls.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

struct LinkOptions {
  std::string name;                                // the edge, for failure texts
  std::string peer;                                // the PE on the other side, for failure texts
  std::size_t frame_bytes = 64U << 10;             // up to which records are gathered; also the largest single send (findings 5)
  std::size_t max_frame_bytes = 1U << 20;          // larger frames are refused before memory is allocated (D4); larger texts are split
  std::size_t most_text = kMostText;               // of a tuple, in bytes
  std::size_t window_bytes = 4U << 20;             // granted by the receiver, unconsumed at any time
  std::chrono::milliseconds most_ahead{500};       // of the receiver's work, on its way at any time
  std::chrono::milliseconds heartbeat{500};        // an idle side says that it lives
  std::chrono::milliseconds silence{30000};        // a peer that said nothing for so long is lost; one that closed is at once
  std::chrono::milliseconds first_silence{60000};  // the same before its first frame: it may still be starting
  bool checksum = true;                            // CRC32C in every frame sent (D6), but where TLS proves more
};

// Totals since the link was made. Frames and bytes of every kind, headers included.
struct LinkCounters {
  std::uint64_t frames_sent = 0, bytes_sent = 0, records_sent = 0;
  std::uint64_t frames_received = 0, bytes_received = 0, records_received = 0;
  std::uint64_t credit_waits = 0;                        // times that the sender had records and no credit
  std::uint64_t blocked_nanoseconds = 0;                 // the operator's thread waited for credit or for the socket
  std::uint64_t given = 0, passed = 0;                   // records and marks: put into it; given on by its receiver
  std::uint64_t unconsumed_bytes = 0;                    // now: sent (or received) and not granted back
  std::uint64_t retransmits = 0;                         // segments that TCP sent again; 0 on a Unix socket
  std::array<std::uint64_t, kFrameFaults> refused = {};  // by FrameFault
};

class Link {
 public:
  enum class Outcome : std::uint8_t { Ok, End, Stopped, Failed };

  // Owns `fd`, a connected stream socket, from now on. Throws std::system_error or std::invalid_argument (window or sizes of no sense).
  // With `tls`, whose handshake over it has ended, what goes over it is encrypted.
  [[nodiscard]] static std::shared_ptr<Link> over(int fd, LinkOptions options, std::shared_ptr<Tls> tls = {});
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Unblocks whoever waits in the link and closes the connection. Any thread, any number of times.
  void interrupt() noexcept;

  [[nodiscard]] LinkCounters counters() const noexcept;  // any thread
  [[nodiscard]] const LinkOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::string failure() const;  // what the first Failed was, empty before; any thread
  [[nodiscard]] bool has_ended() const;       // both sides have said goodbye: nothing will come over it any more; any thread
  [[nodiscard]] std::string encryption() const { return tls_ ? tls_->in_force() : std::string(); }

  // What the two operators below use; each side from its operator's thread.
  void open_out(std::shared_ptr<const Schema> schema);
  // Throws std::length_error for a tuple with more than most_text; the link is as it was.
  [[nodiscard]] Outcome send(const std::byte* records, std::size_t count);
  [[nodiscard]] Outcome send(Mark mark);
  // Bytes that would go out at once, the rest of a frame; 0: none, and the receiver is told that there are some.
  [[nodiscard]] std::size_t room();
  [[nodiscard]] Outcome finish();  // Final and Goodbye; waits until the receiver has consumed everything

  void open_in(std::shared_ptr<const Schema> schema);
  struct Received {
    FrameHeader header;            // Records or Mark
    std::byte* records = nullptr;  // valid until the next receive
    ChunkRef heap;
    std::size_t bytes = 0;  // of the frames that it came in: to be given to consumed()

    [[nodiscard]] Mark mark() const noexcept { return {static_cast<MarkKind>(header.detail), header.value}; }
  };
  [[nodiscard]] Outcome receive(Received& received);  // End: the peer said goodbye
  void consumed(std::size_t bytes);                   // grants their credit back, soon
  // Submits all records of a frame through `out`, then grants its credit back: credit means that downstream has taken it. Returns what a
  // rel_process of a source returns.
  std::int64_t submit(const Received& received, std::byte* out, std::size_t capacity, rel_context* context);
  void mark_passed() noexcept { totals_.passed.fetch_add(1, std::memory_order_relaxed); }  // the same of a frame that was a mark

 private:
  enum class Role : std::uint8_t { None, Out, In };
  using Clock = std::chrono::steady_clock;

  Link(int fd, LinkOptions options, std::shared_ptr<Tls> tls);

  // link.cpp: the connection, the service thread and failures.
  void serve();
  void wake() noexcept;
  void open(Role role, std::shared_ptr<const Schema> schema);
  [[nodiscard]] Outcome lose(const Lock& lock, const std::string& what) REL_HELD(mutex_);  // keeps the first reason, ends the connection
  [[nodiscard]] Outcome lose_silent(const Lock& lock) REL_HELD(mutex_);
  [[nodiscard]] Outcome refuse(const Lock& lock, FrameFault fault, const FrameHeader& header, const std::string& more = {})
      REL_HELD(mutex_);
  [[nodiscard]] bool is_silent() const noexcept {
    return silent_beats_ * options_.heartbeat >= (heard_ ? options_.silence : options_.first_silence);
  }

  // link_send.cpp: what goes out.
  void pump(const Lock& lock) REL_HELD(mutex_);
  [[nodiscard]] bool choose_frame() REL_HELD(mutex_);
  void seal(FrameHeader header, std::span<const std::byte> records = {}, std::span<const char> heap = {}) REL_HELD(mutex_);
  void seal_body() REL_HELD(mutex_);
  [[nodiscard]] bool is_sound(const FrameHeader& header) const REL_HELD(mutex_);
  [[nodiscard]] bool has_credit() const noexcept REL_HELD(mutex_);
  void learn(std::uint64_t granted) REL_HELD(mutex_);
  void keep_ahead(std::uint64_t bytes) noexcept REL_HELD(mutex_);
  void grant(const Lock& lock) REL_HELD(mutex_);
  template <typename Done>
  [[nodiscard]] Outcome wait_until(Lock& lock, Done done) REL_HELD(mutex_);
  [[nodiscard]] bool has_unsent() const noexcept REL_HELD(mutex_) { return sealed_sent_ < sealed_bytes_ || (tls_ && tls_->unsent()); }

  // link_receive.cpp: what comes in. Of the reading thread.
  void read_control();
  [[nodiscard]] FrameFault take_control(const FrameHeader& header) REL_HELD(mutex_);  // sending side
  [[nodiscard]] FrameFault take_in_order(const FrameHeader& header);                  // receiving side
  [[nodiscard]] Outcome read_header(FrameHeader& header, FrameFault& fault);
  [[nodiscard]] Outcome read_text(const FrameHeader& header);
  [[nodiscard]] Outcome read_records(const FrameHeader& header, Received& received);
  [[nodiscard]] Outcome read_body(const FrameHeader& header, std::byte* records, char* text);
  [[nodiscard]] Outcome read_parts(std::span<iovec> parts, std::size_t& got);
  [[nodiscard]] ssize_t wait_for_bytes(std::span<iovec> parts);
  [[nodiscard]] std::string loss_of(int error) const;
  [[nodiscard]] Outcome say_goodbye();
  [[nodiscard]] FrameFault compare_schemas(const FrameHeader& hello) const noexcept;

  const LinkOptions options_;
  const int fd_;
  const std::shared_ptr<Tls> tls_;
  int wake_fd_ = -1;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closing_{false};

  mutable Mutex mutex_;
  std::condition_variable changed_;
  Role role_ REL_GUARDED_BY(mutex_) = Role::None;
  std::shared_ptr<const Schema> schema_;  // constant once the role is set
  std::unique_ptr<FrameBody> open_ REL_GUARDED_BY(mutex_);
  std::unique_ptr<FrameBody> sealed_ REL_GUARDED_BY(mutex_);
  bool body_due_ REL_GUARDED_BY(mutex_) = false;        // the rest of sealed_ is to be sent before anything else of the stream
  std::size_t text_gone_ REL_GUARDED_BY(mutex_) = 0;    // bytes of the heap of sealed_ that are in frames already
  HeaderBytes sealed_header_ REL_GUARDED_BY(mutex_){};  // of the frame under way, and its body
  std::span<const std::byte> sealed_records_ REL_GUARDED_BY(mutex_);
  std::span<const char> sealed_text_ REL_GUARDED_BY(mutex_);
  std::size_t sealed_bytes_ REL_GUARDED_BY(mutex_) = 0;
  std::size_t sealed_sent_ REL_GUARDED_BY(mutex_) = 0;
  std::uint64_t send_sequence_ REL_GUARDED_BY(mutex_) = 0;
  bool hello_due_ REL_GUARDED_BY(mutex_) = false;
  bool heartbeat_due_ REL_GUARDED_BY(mutex_) = false;
  bool mark_due_ REL_GUARDED_BY(mutex_) = false;
  bool goodbye_due_ REL_GUARDED_BY(mutex_) = false;
  bool goodbye_gone_ REL_GUARDED_BY(mutex_) = false;
  bool goodbye_heard_ REL_GUARDED_BY(mutex_) = false;
  bool output_broken_ REL_GUARDED_BY(mutex_) = false;  // the socket takes nothing more
  bool failed_ REL_GUARDED_BY(mutex_) = false;
  bool told_ REL_GUARDED_BY(mutex_) = false;     // the service thread knows of the records in open_
  bool watched_ REL_GUARDED_BY(mutex_) = false;  // the service thread waits for room in the socket
  bool starved_ REL_GUARDED_BY(mutex_) = false;  // waiting for credit, counted
  Mark mark_ REL_GUARDED_BY(mutex_);
  std::uint64_t window_ REL_GUARDED_BY(mutex_) = 0;       // sending side: what the first Credit granted
  std::uint64_t ahead_ REL_GUARDED_BY(mutex_) = 0;        // of that, what may be on its way
  std::uint64_t taken_ REL_GUARDED_BY(mutex_) = 0;        // by the receiver, so far, as credit tells
  Clock::time_point granted_at_ REL_GUARDED_BY(mutex_);   // when credit came, or went, for the last time
  std::uint64_t outstanding_ REL_GUARDED_BY(mutex_) = 0;  // bytes sent, or received, and not granted back
  std::uint64_t consumed_ REL_GUARDED_BY(mutex_) = 0;     // receiving side: bytes to grant back
  std::uint64_t grant_due_ REL_GUARDED_BY(mutex_) = 0;
  std::string failure_ REL_GUARDED_BY(mutex_);
  Clock::time_point last_sent_ REL_GUARDED_BY(mutex_);

  // Incoming, of the one thread that reads: the service thread of a sending side, the operator's of a receiving side.
  HeaderBytes next_header_{};
  std::size_t next_header_bytes_ = 0;
  std::uint64_t receive_sequence_ = 0;
  bool heard_ = false, hello_heard_ = false, final_heard_ = false;
  ChunkRef text_;  // what came ahead of the next records
  std::size_t text_filled_ = 0;
  std::unique_ptr<std::byte[]> body_;
  std::size_t body_capacity_ = 0;
  int silent_beats_ = 0;  // heartbeats' times waited in vain; not a clock, so that a machine that stood still loses nobody

  struct Totals {
    std::atomic<std::uint64_t> frames_sent{0}, bytes_sent{0}, records_sent{0}, frames_received{0}, bytes_received{0}, records_received{0};
    std::atomic<std::uint64_t> credit_waits{0}, blocked_nanoseconds{0}, unconsumed{0}, given{0}, passed{0};
    std::array<std::atomic<std::uint64_t>, kFrameFaults> refused{};
  } totals_;

  std::thread service_;
};

// The two ends as operators. link_out is a sink that gathers runs into frames; link_in a source with a thread of its own (P08).
// A failing link fails its operator with a text that names edge, peer and what was seen.
[[nodiscard]] std::shared_ptr<Operator> link_out(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link);
[[nodiscard]] std::shared_ptr<Operator> link_in(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link);

}  // namespace rayelastic
