// The frame that a link sends now.
//
// Invariant: a frame begins once the socket has accepted all of the one before, and sequence numbers have no gap.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/net/link/link_socket.hpp"

namespace rayelastic {

class FrameWriter {
 public:
  // Records and text stay where they are until is_done().
  void begin(FrameHeader header, std::span<const std::byte> records, std::span<const char> text, bool checksum) noexcept {
    RE_CHECK(is_done());
    header.sequence = sequence_++;
    header.checksummed = checksum;
    if (checksum) header.checksum = checksum_of(header, records, text);
    header_ = encode_header(header);
    records_ = records;
    text_ = text;
    sent_ = 0;
    RE_CHECK(bytes() == header.frame_bytes());
  }
  // What the socket hasn't accepted, `most` bytes of it at most.
  [[nodiscard]] std::array<iovec, 3> unsent(std::size_t most) noexcept {
    std::array<iovec, 3> parts{iovec{header_.data(), header_.size()}, iovec{const_cast<std::byte*>(records_.data()), records_.size()},
                               iovec{const_cast<char*>(text_.data()), text_.size()}};
    skip(parts, sent_);
    for (iovec& part : parts) {
      part.iov_len = std::min(part.iov_len, most);
      most -= part.iov_len;
    }
    return parts;
  }
  // The socket has accepted so many bytes more.
  void advance(std::size_t bytes_sent) noexcept {
    sent_ += bytes_sent;
    RE_CHECK(sent_ <= bytes());
  }
  [[nodiscard]] bool is_done() const noexcept { return sent_ == bytes(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return kFrameHeaderBytes + records_.size() + text_.size(); }

  // Whether a peer of such limits accepts the frame, by what its header says.
  [[nodiscard]] bool is_sound(FrameLimits limits) const noexcept {
    FrameHeader seen;
    limits.sequence = sequence_ - 1;
    return decode_header(header_, limits, seen) == FrameFault::None && seen.frame_bytes() == bytes();
  }

 private:
  HeaderBytes header_{};
  std::span<const std::byte> records_;
  std::span<const char> text_;
  std::size_t sent_ = kFrameHeaderBytes;  // there is none at first
  std::uint64_t sequence_ = 0;            // of the next one
};

}  // namespace rayelastic
