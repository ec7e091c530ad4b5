// What the operator has put into a link and the socket hasn't accepted yet: records, and a mark behind them.
//
// Invariant: everything leaves in the order in which it was put. One body gathers records while the frames of the other are sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class Outbox {
 public:
  struct Frame {
    FrameHeader header;
    std::span<const std::byte> records = {};
    std::span<const char> text = {};
  };

  // Before anything is put into it.
  void open(const std::shared_ptr<const Schema>& schema, std::size_t frame_bytes, std::size_t most_text) {
    open_ = std::make_unique<FrameBody>(schema, frame_bytes, most_text);
    sealed_ = std::make_unique<FrameBody>(schema, frame_bytes, most_text);
    record_bytes_ = static_cast<std::uint32_t>(schema->record_size());
  }

  // As FrameBody::append.
  [[nodiscard]] std::size_t append(const std::byte* records, std::size_t count, FrameBody::Append& outcome) {
    RE_CHECK(!mark_);
    return open_->append(records, count, outcome);
  }
  void put(Mark mark) {
    RE_CHECK(!has_records() && !mark_);
    mark_ = mark;
  }
  // From now on a body is full at so many bytes.
  void aim(std::size_t frame_bytes) noexcept {
    open_->aim(frame_bytes);
    sealed_->aim(frame_bytes);
  }

  [[nodiscard]] bool has_records() const noexcept { return open_ != nullptr && !open_->empty(); }  // that aren't sealed
  [[nodiscard]] bool has_mark() const noexcept { return mark_.has_value(); }
  [[nodiscard]] bool has_rest() const noexcept { return rest_due_; }  // of the sealed body: it goes before all else
  [[nodiscard]] std::size_t frame_bytes() const noexcept { return open_->frame_bytes(); }
  [[nodiscard]] std::size_t free_bytes() const noexcept { return open_->free_bytes(); }

  // What was gathered is to be sent. The frames of the sealed body before are with the socket.
  void seal() noexcept {
    RE_CHECK(!rest_due_ && text_sent_ <= sealed_->heap().size());
    std::swap(open_, sealed_);
    open_->clear();
    text_sent_ = 0;
  }
  // The next frame of the sealed body, of `most` bytes at most if the text can be cut: text that is too much for one goes ahead, piece by
  // piece. Valid until the next seal().
  [[nodiscard]] Frame next_frame(std::size_t most) {
    RE_CHECK(sealed_->count() > 0 && text_sent_ <= sealed_->heap().size());
    const std::span<const char> left = sealed_->heap().subspan(text_sent_);
    rest_due_ = left.size() > most / 2 && sealed_->frame_bytes() > most;
    const std::span<const char> text = rest_due_ ? left.first(most / 2) : left;
    Frame frame{.header = {.kind = FrameKind::Text, .heap_bytes = static_cast<std::uint32_t>(text.size())}, .text = text};
    if (rest_due_) {
      frame.header.value = static_cast<std::int64_t>(sealed_->heap().size());
      text_sent_ += text.size();
      RE_CHECK(text_sent_ < sealed_->heap().size());  // the rest goes with the records
    } else {
      frame.header.kind = FrameKind::Records;
      frame.header.records = static_cast<std::uint32_t>(sealed_->count());
      frame.header.record_bytes = record_bytes_;
      frame.records = sealed_->records();
    }
    return frame;
  }
  [[nodiscard]] Mark take_mark() noexcept {
    RE_CHECK(mark_ && !has_records() && !rest_due_);
    const Mark mark = *mark_;
    mark_.reset();
    return mark;
  }

 private:
  std::unique_ptr<FrameBody> open_;
  std::unique_ptr<FrameBody> sealed_;
  std::uint32_t record_bytes_ = 0;
  bool rest_due_ = false;
  std::size_t text_sent_ = 0;  // bytes of the heap of sealed_ that are in frames already
  std::optional<Mark> mark_;
};

}  // namespace rayelastic
