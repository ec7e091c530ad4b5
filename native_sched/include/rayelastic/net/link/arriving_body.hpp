// The body that comes in over a link, piece by piece. Used by the thread that reads.
//
// Invariant: pieces of text come directly before the records that they belong to, and together are exactly the text that the first piece
// announced; memory for all of it is allocated once that piece has turned out to be whole.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

class ArrivingBody {
 public:
  // Whether the frame can follow the text that is here.
  [[nodiscard]] FrameFault check_order(const FrameHeader& header) const noexcept {
    if (text_filled_ == 0 || header.kind == FrameKind::Heartbeat) return FrameFault::None;
    const std::size_t whole = text_->size(), filled = text_filled_ + header.heap_bytes;
    if (!has_body(header.kind)) return FrameFault::Order;
    const bool fits =
        header.kind == FrameKind::Records ? filled == whole : filled < whole && static_cast<std::size_t>(header.value) == whole;
    return fits ? FrameFault::None : FrameFault::Field;
  }

  // Where the text of a Text frame goes; finish_text() once it is there.
  [[nodiscard]] char* begin_text(const FrameHeader& header) {
    if (text_filled_ == 0) text_ = Chunk::allocate(header.heap_bytes);
    return text_->data() + text_filled_;
  }
  void finish_text(const FrameHeader& header) {
    if (text_filled_ == 0) {
      const ChunkRef first = std::exchange(text_, Chunk::allocate(static_cast<std::size_t>(header.value)));
      std::memcpy(text_->data(), first->data(), header.heap_bytes);
    }
    text_filled_ += header.heap_bytes;
    RE_CHECK(text_filled_ < text_->size());  // the rest comes with the records
  }

  // Where the text of a Records frame goes; its records go to records().
  [[nodiscard]] char* begin_records(const FrameHeader& header) {
    const std::size_t bytes = std::size_t{header.records} * header.record_bytes;
    if (bytes > capacity_) {
      records_.reset(new std::byte[bytes]);
      capacity_ = bytes;
    }
    if (text_filled_ == 0) text_ = header.heap_bytes > 0 ? Chunk::allocate(header.heap_bytes) : ChunkRef();
    RE_CHECK(text_filled_ + header.heap_bytes == text().size());
    return text().data() + text_filled_;
  }
  [[nodiscard]] std::byte* records() const noexcept { return records_.get(); }
  [[nodiscard]] std::span<char> text() const noexcept { return text_ ? std::span(text_->data(), text_->size()) : std::span<char>{}; }
  [[nodiscard]] ChunkRef take_text() noexcept {
    text_filled_ = 0;
    return std::exchange(text_, ChunkRef());
  }

 private:
  ChunkRef text_;
  std::size_t text_filled_ = 0;  // bytes of it that are here, in frames before this one
  std::unique_ptr<std::byte[]> records_;
  std::size_t capacity_ = 0;  // bytes of records_
};

}  // namespace rayelastic
