// What a link counts.
//
// Invariant: a total never falls. Any thread adds to it and reads it, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rayelastic/net/frame.hpp"

namespace rayelastic {

// Totals since the link was made. Frames and bytes of every kind, headers included.
struct LinkCounters {
  std::uint64_t frames_sent = 0, bytes_sent = 0, records_sent = 0;
  std::uint64_t frames_received = 0, bytes_received = 0, records_received = 0;
  std::uint64_t credit_waits = 0;                        // times that the sender had records and no credit
  std::uint64_t blocked_nanoseconds = 0;                 // the operator's thread waited for credit or for the socket
  std::uint64_t given = 0, passed = 0;                   // records and marks: put into it; emitted by its receiver
  std::uint64_t unconsumed_bytes = 0;                    // now: sent (or received) and not granted back
  std::uint64_t retransmits = 0;                         // segments that TCP sent again; 0 on a Unix socket
  std::array<std::uint64_t, kFrameFaults> refused = {};  // by FrameFault
};

class LinkTotal {
 public:
  void add(std::uint64_t amount) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct LinkTotals {
  LinkTotal frames_sent, bytes_sent, records_sent;
  LinkTotal frames_received, bytes_received, records_received;
  LinkTotal credit_waits, blocked_nanoseconds, given, passed;
  std::array<LinkTotal, kFrameFaults> refused;

  // All but what the link knows by other means: unconsumed_bytes and retransmits.
  [[nodiscard]] LinkCounters read() const noexcept {
    LinkCounters counters{.frames_sent = frames_sent.get(),
                          .bytes_sent = bytes_sent.get(),
                          .records_sent = records_sent.get(),
                          .frames_received = frames_received.get(),
                          .bytes_received = bytes_received.get(),
                          .records_received = records_received.get(),
                          .credit_waits = credit_waits.get(),
                          .blocked_nanoseconds = blocked_nanoseconds.get(),
                          .given = given.get(),
                          .passed = passed.get()};
    for (std::size_t fault = 0; fault < kFrameFaults; ++fault) counters.refused[fault] = refused[fault].get();
    return counters;
  }
};

}  // namespace rayelastic
