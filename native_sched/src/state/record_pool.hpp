// Stores records of an operator for a while, with copies of their texts. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/schema.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/text_rooms.hpp"
#include "record/numbers.hpp"

namespace rayelastic {

class RecordPool {
 public:
  explicit RecordPool(std::shared_ptr<const Schema> schema) : schema_(std::move(schema)) {
    for (const Field& field : schema_->fields()) {
      if (!is_text(field.type)) continue;
      texts_.push_back(field.offset);
      checks_.push_back(check_of_texts(field.type));
    }
  }

  [[nodiscard]] std::byte* keep(const std::byte* record) {
    std::byte* kept = take();
    std::memcpy(kept, record, schema_->record_size());
    for (const std::size_t offset : texts_) {
      const auto text = load<StringView>(record + offset);
      *reinterpret_cast<StringView*>(kept + offset) = rooms_.copy(text.data(), text.length);
    }
    return kept;
  }
  // One that StateReader::record() gave.
  [[nodiscard]] std::byte* restore(const std::byte* exported) {
    std::byte* kept = take();
    shape().restore(exported, kept, rooms_);
    return kept;
  }

  void drop(std::byte* kept) noexcept {
    for (const std::size_t offset : texts_) rooms_.clear(*reinterpret_cast<StringView*>(kept + offset));
    RE_CHECK(free_.size() < blocks_.size() * kBlockRecords);
    RE_ASSERT(std::ranges::find(free_, kept) == free_.end());
    free_.push_back(kept);
  }

  [[nodiscard]] RecordShape shape() const noexcept { return {schema_->record_size(), texts_, checks_, schema_.get()}; }
  [[nodiscard]] std::size_t bytes() const noexcept { return blocks_.size() * words() * 8 * kBlockRecords + rooms_.bytes(); }
  // Of what its records are.
  [[nodiscard]] std::uint64_t layout() const noexcept {
    std::uint64_t digest = hash_of(schema_->record_size());
    for (const Field& field : schema_->fields()) {
      digest = hash_of(digest ^ (field.offset * 256 + static_cast<std::uint64_t>(field.type) * 2 + (field.nullable ? 1 : 0)));
    }
    return digest;
  }

 private:
  static constexpr std::size_t kBlockRecords = 64;

  [[nodiscard]] std::size_t words() const noexcept { return schema_->record_size() / 8; }
  [[nodiscard]] std::byte* take() {
    if (free_.empty()) {
      blocks_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(words() * kBlockRecords));
      free_.reserve(blocks_.size() * kBlockRecords);  // so that drop() never fails
      for (std::size_t i = kBlockRecords; i-- > 0;) free_.push_back(reinterpret_cast<std::byte*>(blocks_.back().get() + i * words()));
    }
    RE_CHECK(words() * 8 == schema_->record_size());
    std::byte* taken = free_.back();
    free_.pop_back();
    return taken;
  }

  std::shared_ptr<const Schema> schema_;
  std::vector<std::size_t> texts_;
  std::vector<TextCheck> checks_;
  TextRooms rooms_;
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks_;
  std::vector<std::byte*> free_;
};

}  // namespace rayelastic
