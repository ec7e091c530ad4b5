// A stream between two PEs: one authenticated socket that carries runs of records one way and credits the other.
// Architecture section 6; P08 (one thread per PE input port: receive, deserialise, execute); rules D4-D6.
// Knows nothing of handshakes (rayelastic/runtime/data_port.py did that), addresses or queues.
//
// Threads: the operator's thread (send or receive, never two at once) and one service thread per link, which sends what is
// there as soon as it can, sends heartbeats, and on the sending side reads credits. Everything that goes out is chosen and
// written under `mutex_` with non-blocking sends; what comes in is touched by one thread only (sending side: service thread,
// receiving side: operator's thread).
// Bounds: the sender holds at most two frames; the receiver at most one frame, and the kernel and it together at most the
// window plus one frame that were not yet granted back. Nothing waits for ever: a silent or lost peer is a failure.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "rayelastic/frame.hpp"
#include "rayelastic/operator.hpp"

namespace rayelastic {

struct LinkOptions {
  std::string name;                          // the edge, for failure texts
  std::string peer;                          // the PE on the other side, for failure texts
  std::size_t frame_bytes = 64U << 10;       // up to which records are gathered; also the largest single send (findings 5)
  std::size_t max_frame_bytes = 8U << 20;    // larger frames are refused before memory is allocated (D4)
  std::size_t window_bytes = 4U << 20;       // granted by the receiver, unconsumed at any time
  std::chrono::milliseconds heartbeat{500};  // an idle side says that it lives
  std::chrono::milliseconds silence{3000};   // a peer that said nothing for so long is lost
  bool checksum = true;                      // CRC32C in every frame sent (D6)
};

// Totals since the link was made. Frames and bytes of every kind, headers included.
struct LinkCounters {
  std::uint64_t frames_sent = 0, bytes_sent = 0, records_sent = 0;
  std::uint64_t frames_received = 0, bytes_received = 0, records_received = 0;
  std::uint64_t credit_waits = 0;      // times that the sender had records and no credit
  std::uint64_t blocked_nanoseconds = 0;  // the operator's thread waited for credit or for the socket
  std::uint64_t unconsumed_bytes = 0;  // now: sent (or received) and not granted back
  std::array<std::uint64_t, kFrameFaults> refused = {};  // by FrameFault
};

class Link {
 public:
  enum class Outcome : std::uint8_t { Ok, End, Stopped, Failed };

  // Owns `fd`, a connected stream socket, from now on. Throws std::system_error or std::invalid_argument (window or sizes of no sense).
  [[nodiscard]] static std::shared_ptr<Link> over(int fd, LinkOptions options);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Unblocks whoever waits in the link and closes the connection. Any thread, any number of times.
  void interrupt() noexcept;

  [[nodiscard]] LinkCounters counters() const noexcept;  // any thread
  [[nodiscard]] const LinkOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::string failure() const;  // what the first Failed was, empty before; any thread

  // What the two operators below use; each side from its operator's thread.
  void open_out(std::shared_ptr<const Schema> schema);
  [[nodiscard]] Outcome send(const std::byte* records, std::size_t count);
  [[nodiscard]] Outcome send(Mark mark);
  [[nodiscard]] Outcome finish();  // Final and Goodbye; waits until the receiver has consumed everything

  void open_in(std::shared_ptr<const Schema> schema);
  struct Received {
    FrameHeader header;          // Records or Mark
    std::byte* records = nullptr;  // valid until the next receive
    ChunkRef heap;
  };
  [[nodiscard]] Outcome receive(Received& received);  // End: the peer said goodbye
  void consumed(std::size_t frame_bytes);             // grants the credit of a frame back

 private:
  enum class Role : std::uint8_t { None, Out, In };
  using Clock = std::chrono::steady_clock;

  Link(int fd, LinkOptions options);

  void serve();
  void wake() noexcept;
  void pump();                               // mutex_ held
  bool choose_frame();                       // mutex_ held
  void seal(FrameHeader header);             // mutex_ held
  [[nodiscard]] bool has_credit() const noexcept;  // mutex_ held
  [[nodiscard]] Outcome wait_sent(std::unique_lock<std::mutex>& lock, bool (Link::*done)() const noexcept);
  [[nodiscard]] bool records_gone() const noexcept { return open_->empty(); }
  [[nodiscard]] bool mark_gone() const noexcept { return !mark_due_; }
  [[nodiscard]] bool goodbye_heard() const noexcept { return goodbye_heard_; }
  [[nodiscard]] bool all_gone() const noexcept { return goodbye_gone_; }

  void read_control();                       // service thread of the sending side
  void accept_control(const FrameHeader& header);
  [[nodiscard]] FrameFault expect(const FrameHeader& header) const noexcept;
  [[nodiscard]] Outcome read_body(const FrameHeader& header, Received& received);
  [[nodiscard]] Outcome read_some(std::size_t body_have, std::size_t records_bytes, std::size_t heap_bytes, char* heap, std::size_t& got);

  Outcome refuse(FrameFault fault, const FrameHeader& header, const std::string& detail = {});
  Outcome lose(const std::string& what);     // keeps the first reason, closes the connection
  [[nodiscard]] std::string described(const std::string& what) const;

  const LinkOptions options_;
  const int fd_;
  int wake_fd_ = -1;

  std::atomic<bool> stopping_{false};
  std::atomic<bool> closing_{false};

  // Outgoing, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Role role_ = Role::None;
  std::shared_ptr<const Schema> schema_;
  std::unique_ptr<FrameBody> open_, sealed_;
  HeaderBytes sealed_header_{};
  std::size_t sealed_bytes_ = 0, sealed_sent_ = 0;
  std::uint64_t send_sequence_ = 0;
  bool hello_due_ = false, heartbeat_due_ = false, mark_due_ = false, goodbye_due_ = false;
  bool goodbye_gone_ = false, goodbye_heard_ = false, output_broken_ = false, told_ = false, starved_ = false;
  Mark mark_;
  std::uint64_t grant_due_ = 0, window_ = 0, outstanding_ = 0;
  std::string failure_;
  Clock::time_point last_sent_;

  // Incoming, of the one thread that reads.
  HeaderBytes next_header_{};
  std::size_t next_header_bytes_ = 0;
  std::uint64_t receive_sequence_ = 0;
  bool hello_heard_ = false, final_heard_ = false;
  std::uint64_t ungranted_ = 0;
  std::unique_ptr<std::byte[]> body_;
  std::size_t body_capacity_ = 0;
  Clock::time_point last_heard_;

  struct Totals {
    std::atomic<std::uint64_t> frames_sent{0}, bytes_sent{0}, records_sent{0}, frames_received{0}, bytes_received{0}, records_received{0};
    std::atomic<std::uint64_t> credit_waits{0}, blocked_nanoseconds{0}, unconsumed{0};
    std::array<std::atomic<std::uint64_t>, kFrameFaults> refused{};
  } totals_;

  std::thread service_;
};

// The two ends as operators. link_out is a sink that gathers runs into frames; link_in a source with a thread of its own (P08).
// A failing link fails its operator with a text that names edge, peer and what was seen.
[[nodiscard]] OperatorSpec link_out(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link);
[[nodiscard]] OperatorSpec link_in(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link);

}  // namespace rayelastic
