// The headers that come in over a link. Used by the thread that reads.
//
// Invariant: frames are accepted in sequence and in order: one Hello comes first, but for heartbeats, and only a goodbye follows Final.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/frame.hpp"

namespace rayelastic {

class FrameReader {
 public:
  void open(const FrameLimits& limits) noexcept { limits_ = limits; }

  // Where the rest of the next header goes.
  [[nodiscard]] iovec rest() noexcept { return {bytes_.data() + filled_, bytes_.size() - filled_}; }
  void fill(std::size_t bytes) noexcept {
    filled_ += bytes;
    RE_CHECK(filled_ <= kFrameHeaderBytes);
  }
  [[nodiscard]] bool is_whole() const noexcept { return filled_ == kFrameHeaderBytes; }
  // Decodes the header, which is whole. The next one may come then.
  [[nodiscard]] FrameFault take(FrameHeader& header) noexcept {
    RE_CHECK(is_whole());
    filled_ = 0;
    return decode_header(bytes_, limits_, header);
  }
  // Whether a frame of this kind can come now, from the other side of a link that sends this schema.
  [[nodiscard]] FrameFault check_order(const FrameHeader& header, const Schema& schema) noexcept {
    switch (header.kind) {
      case FrameKind::Heartbeat:
      case FrameKind::Goodbye:  // the sides differ
        return FrameFault::None;
      case FrameKind::Hello:
        if (std::exchange(has_hello_, true)) return FrameFault::Order;
        return header.record_bytes == schema.record_size() && static_cast<std::uint64_t>(header.value) == fingerprint(schema)
                   ? FrameFault::None
                   : FrameFault::Schema;
      case FrameKind::Records:
      case FrameKind::Text:
      case FrameKind::Credit:
      case FrameKind::Mark:
        if (!has_hello_ || has_final_) return FrameFault::Order;
        has_final_ = header.kind == FrameKind::Mark && header.detail == static_cast<std::uint8_t>(MarkKind::Final);
        return FrameFault::None;
    }
    return FrameFault::Kind;
  }
  // All of the frame is here.
  void accept() noexcept { ++limits_.sequence; }

  [[nodiscard]] bool has_hello() const noexcept { return has_hello_; }
  [[nodiscard]] bool has_final() const noexcept { return has_final_; }
  [[nodiscard]] std::uint64_t sequence() const noexcept { return limits_.sequence; }  // of the frame that is due

 private:
  FrameLimits limits_;
  HeaderBytes bytes_{};
  std::size_t filled_ = 0;
  bool has_hello_ = false;
  bool has_final_ = false;
};

}  // namespace rayelastic
