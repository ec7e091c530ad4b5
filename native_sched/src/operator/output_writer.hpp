// Collects the output of an operator that may emit many records in a call: flushes when the output is full, and keeps the texts of the
// records in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

class OutputWriter {
 public:
  // `out`: the engine's buffer; or, `aside`, another one, of an operator that is called with a mark.
  OutputWriter(const Schema& schema, void* out, std::int64_t capacity, rel_context* context, bool aside = false)
      : schema_(schema),
        out_(static_cast<std::byte*>(out)),
        capacity_(static_cast<std::size_t>(capacity)),
        context_(context),
        aside_(aside) {}

  // Room for another record, zero. Null: the operator has to stop.
  [[nodiscard]] std::byte* next() {
    if (count_ == capacity_ && !flush()) return nullptr;
    if (stopped_) return nullptr;
    std::byte* record = out_ + count_++ * schema_.record_size();
    std::memset(record, 0, schema_.record_size());
    return record;
  }

  // Gives a record texts of its own: what they point to may go once this has returned.
  void detach(std::byte* record) {
    if (!schema_.has_text()) return;
    for (const Field& field : schema_.fields()) {
      if (field.type != Type::String && field.type != Type::Binary) continue;
      auto& text = *reinterpret_cast<StringView*>(record + field.offset);
      if (text.is_inline()) continue;
      char* room = texts(text.length);
      std::memcpy(room, text.pointer, text.length);
      text.pointer = room;
    }
  }

  // Submits what there is. False: the operator has to stop.
  bool flush() {
    if (!stopped_ && count_ > 0) stopped_ = !submit(static_cast<std::int64_t>(count_));
    count_ = 0;
    chunk_ = ChunkRef();
    return !stopped_;
  }

  // What the call returns.
  [[nodiscard]] std::int64_t result() const noexcept { return stopped_ ? REL_STOPPED : static_cast<std::int64_t>(count_); }

 private:
  static constexpr std::size_t kChunkBytes = 16 * 1024;

  bool submit(std::int64_t n) { return aside_ ? context_->emit(0, out_, n) : context_->flush(n); }

  char* texts(std::size_t bytes) {
    if (!chunk_ || chunk_->size() - used_ < bytes) {
      chunk_ = Chunk::allocate(std::max(bytes, kChunkBytes));
      used_ = 0;
      context_->attach(chunk_.get());
    }
    used_ += bytes;
    return chunk_->data() + used_ - bytes;
  }

  const Schema& schema_;
  std::byte* const out_;
  const std::size_t capacity_;
  rel_context* const context_;
  const bool aside_;
  std::size_t count_ = 0;
  bool stopped_ = false;
  ChunkRef chunk_;  // of texts, attached to the run that is being made
  std::size_t used_ = 0;
};

}  // namespace rayelastic
