// A stream between two PEs: one authenticated socket that carries runs of records one way and credit the other.
// Architecture section 6; P08 (one thread per PE input port: receive, deserialise, execute); rules D4-D6.
// Knows nothing of handshakes (rayelastic/runtime/port/data_port.py did that), addresses or queues.
//
// A link is made of parts, each in its own header with its invariant. The sending side: what the operator has put into it (outbox.hpp) and
// how much of that may be on its way (send_credit.hpp). The receiving side: the body that comes in (arriving_body.hpp) and what is granted
// back for it (grants.hpp). Both: the socket, the frame being sent (frame_writer.hpp), the headers that come in (frame_reader.hpp), how far
// the link is (link_state.hpp), how long the peer is silent (peer_silence.hpp), and the totals. The link itself is the protocol: which
// frame goes next, what a frame that comes in changes, who is woken.
//
// Threads: the operator's thread (send or receive, never two at once) and one service thread per link, which sends what is
// there as soon as it can, sends heartbeats, and on the sending side reads credit. Everything that goes out is chosen and
// written under `mutex_` with non-blocking sends; what comes in is touched by one thread only (sending side: service thread,
// receiving side: operator's thread).
// Bounds: the sender holds at most two bodies and the receiver one (frames, but for large texts). On the way (in the kernel, mostly) is at most
// what send_credit.hpp says: so a tuple, or a mark, arrives soon although downstream is slow.
// Nothing waits for ever: a silent or lost peer is a failure.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "rayelastic/mutex.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/net/link/arriving_body.hpp"
#include "rayelastic/net/link/frame_reader.hpp"
#include "rayelastic/net/link/frame_writer.hpp"
#include "rayelastic/net/link/grants.hpp"
#include "rayelastic/net/link/link_socket.hpp"
#include "rayelastic/net/link/link_state.hpp"
#include "rayelastic/net/link/link_totals.hpp"
#include "rayelastic/net/link/outbox.hpp"
#include "rayelastic/net/link/peer_silence.hpp"
#include "rayelastic/net/link/send_credit.hpp"
#include "rayelastic/net/link/wake_up.hpp"
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

class Link {
 public:
  enum class Outcome : std::uint8_t { Ok, End, Stopped, Failed };

  // Owns `fd`, a connected stream socket, from now on. Throws std::system_error or std::invalid_argument (window or sizes of no sense).
  // With `tls`, whose handshake over it has ended, what goes over it is encrypted.
  [[nodiscard]] static std::shared_ptr<Link> over(int fd, LinkOptions options, std::shared_ptr<Tls> tls = {});
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Unblocks the threads that wait in the link, and closes the connection. Any thread, any number of times.
  void interrupt() noexcept;

  [[nodiscard]] LinkCounters counters() const noexcept;  // any thread
  [[nodiscard]] const LinkOptions& options() const noexcept { return options_; }
  [[nodiscard]] std::string failure() const;  // what the first Failed was, empty before; any thread
  [[nodiscard]] bool has_ended() const;       // both sides have said goodbye: nothing will come over it any more; any thread
  [[nodiscard]] std::string encryption() const { return socket_.encryption(); }

  // What the two operators below use; each side from its operator's thread.
  void open_out(std::shared_ptr<const Schema> schema);
  // Throws std::length_error for a tuple with more than most_text; the link is as it was.
  [[nodiscard]] Outcome send(const std::byte* records, std::size_t count);
  [[nodiscard]] Outcome send(Mark mark);
  // Bytes that would go out at once, the rest of a frame; 0: none, and the receiver learns that the sender waits.
  [[nodiscard]] std::size_t room();
  [[nodiscard]] Outcome finish();  // Final and Goodbye; waits until the receiver has consumed everything

  void open_in(std::shared_ptr<const Schema> schema);
  struct Received {
    FrameHeader header;            // Records or Mark
    std::byte* records = nullptr;  // valid until the next receive
    ChunkRef heap;
    std::size_t bytes = 0;  // of the frames that it came in, for consumed()

    [[nodiscard]] Mark mark() const noexcept { return {static_cast<MarkKind>(header.detail), header.value}; }
  };
  [[nodiscard]] Outcome receive(Received& received);  // End: the peer said goodbye
  void consumed(std::size_t bytes);                   // grants their credit back, soon
  // Submits all records of a frame through `out`, then grants its credit back: credit means that downstream has accepted it. Returns what a
  // rel_process of a source returns.
  std::int64_t submit(const Received& received, std::byte* out, std::size_t capacity, rel_context* context);
  void mark_passed() noexcept { totals_.passed.add(1); }  // the same of a frame that was a mark

 private:
  using Clock = std::chrono::steady_clock;

  Link(int fd, LinkOptions options, std::shared_ptr<Tls> tls);

  // link.cpp: opening, the service thread and failures.
  void serve(const std::stop_token& end);
  void open(LinkState::Side side, std::shared_ptr<const Schema> schema);
  [[nodiscard]] FrameLimits limits() const noexcept;                                       // of a receiving side, but for the sequence
  [[nodiscard]] Outcome lose(const Lock& lock, const std::string& what) REL_HELD(mutex_);  // keeps the first reason, ends the connection
  [[nodiscard]] Outcome lose_silent(const Lock& lock) REL_HELD(mutex_);
  [[nodiscard]] Outcome refuse(const Lock& lock, FrameFault fault, const FrameHeader& header, const std::string& more = {})
      REL_HELD(mutex_);

  // link_send.cpp: what goes out.
  void pump(const Lock& lock) REL_HELD(mutex_);
  [[nodiscard]] bool choose_frame() REL_HELD(mutex_);
  void begin_frame(const FrameHeader& header, std::span<const std::byte> records = {}, std::span<const char> text = {}) REL_HELD(mutex_);
  void begin_body() REL_HELD(mutex_);
  void starve() REL_HELD(mutex_);
  void grant(const Lock& lock) REL_HELD(mutex_);
  template <typename Done>
  [[nodiscard]] Outcome wait_until(Lock& lock, Done done) REL_HELD(mutex_);
  [[nodiscard]] bool has_unsent() const noexcept REL_HELD(mutex_) { return !writer_.is_done() || socket_.has_unsent(); }
  [[nodiscard]] bool has_said_goodbye() const noexcept REL_HELD(mutex_);
  // The service thread has to wait until the socket accepts more, and doesn't yet.
  [[nodiscard]] bool needs_service() const noexcept REL_HELD(mutex_) { return has_unsent() && !watched_; }

  // link_receive.cpp: what comes in. Of the reading thread.
  void read_control();
  [[nodiscard]] FrameFault take_control(const FrameHeader& header) REL_HELD(mutex_);  // sending side
  [[nodiscard]] FrameFault take_in_order(const FrameHeader& header);                  // receiving side
  void count_bytes(std::size_t bytes) noexcept;
  void accept_frame() noexcept;
  [[nodiscard]] Outcome read_header(FrameHeader& header, FrameFault& fault);
  [[nodiscard]] Outcome read_text(const FrameHeader& header);
  [[nodiscard]] Outcome read_records(const FrameHeader& header, Received& received);
  [[nodiscard]] Outcome read_body(const FrameHeader& header, std::byte* records, char* text);
  [[nodiscard]] Outcome read_parts(std::span<iovec> parts, std::size_t& got);
  [[nodiscard]] Outcome say_goodbye();

  const LinkOptions options_;
  LinkSocket socket_;
  WakeUp wake_up_;  // of the service thread
  LinkTotals totals_;
  std::atomic<bool> stopping_{false};
  std::shared_ptr<const Schema> schema_;  // constant once it is open

  mutable Mutex mutex_;
  std::condition_variable changed_;
  LinkState state_ REL_GUARDED_BY(mutex_);
  FrameWriter writer_ REL_GUARDED_BY(mutex_);
  Outbox outbox_ REL_GUARDED_BY(mutex_);      // sending side
  SendCredit credit_ REL_GUARDED_BY(mutex_);  // sending side
  Grants grants_ REL_GUARDED_BY(mutex_);      // receiving side
  bool heartbeat_due_ REL_GUARDED_BY(mutex_) = false;
  bool announced_ REL_GUARDED_BY(mutex_) = false;  // the service thread knows of the records in the outbox
  bool watched_ REL_GUARDED_BY(mutex_) = false;    // the service thread waits until the socket accepts more
  Clock::time_point last_sent_ REL_GUARDED_BY(mutex_) = Clock::now();

  // Incoming, of the one thread that reads: the service thread of a sending side, the operator's of a receiving side.
  FrameReader reader_;
  ArrivingBody body_;
  PeerSilence silence_;

  std::jthread service_;  // the last: it ends first
};

// The two ends as operators. link_out is a sink that gathers runs into frames; link_in a source with a thread of its own (P08).
// A failing link fails its operator with a text that names edge, peer and what was seen.
[[nodiscard]] std::shared_ptr<Operator> link_out(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link);
[[nodiscard]] std::shared_ptr<Operator> link_in(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Link> link);

}  // namespace rayelastic
