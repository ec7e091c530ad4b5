// Records that an operator keeps for a while, with texts of their own. One thread at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "numbers.hpp"
#include "rayelastic/schema.hpp"
#include "rayelastic/text_rooms.hpp"

namespace rayelastic {

class RecordPool {
 public:
  explicit RecordPool(std::shared_ptr<const Schema> schema) : schema_(std::move(schema)) {
    for (const Field& field : schema_->fields()) {
      if (is_text(field.type)) texts_.push_back(field.offset);
    }
  }

  [[nodiscard]] std::byte* keep(const std::byte* record) {
    if (free_.empty()) {
      const std::size_t words = schema_->record_size() / 8;
      blocks_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(words * kBlockRecords));
      free_.reserve(blocks_.size() * kBlockRecords);  // so that drop() never fails
      for (std::size_t i = kBlockRecords; i-- > 0;) free_.push_back(reinterpret_cast<std::byte*>(blocks_.back().get() + i * words));
    }
    std::byte* kept = free_.back();
    free_.pop_back();
    std::memcpy(kept, record, schema_->record_size());
    for (const std::size_t offset : texts_) {
      const auto text = load<StringView>(record + offset);
      *reinterpret_cast<StringView*>(kept + offset) = rooms_.copy(text.data(), text.length);
    }
    return kept;
  }

  void drop(std::byte* kept) noexcept {
    for (const std::size_t offset : texts_) rooms_.clear(*reinterpret_cast<StringView*>(kept + offset));
    free_.push_back(kept);
  }

 private:
  static constexpr std::size_t kBlockRecords = 64;

  std::shared_ptr<const Schema> schema_;
  std::vector<std::size_t> texts_;
  TextRooms rooms_;
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
  std::vector<std::byte*> free_;
};

// A kept record that waits for the watermark: first those that are due first, then by time, port and arrival.
struct Waiting {
  std::int64_t due;
  std::int64_t time;
  std::size_t port;
  std::uint64_t number;
  std::byte* record;

  // For a heap whose top comes first.
  friend bool operator<(const Waiting& one, const Waiting& other) noexcept {
    if (one.due != other.due) return one.due > other.due;
    if (one.time != other.time) return one.time > other.time;
    return one.port != other.port ? one.port > other.port : one.number > other.number;
  }
};

}  // namespace rayelastic
