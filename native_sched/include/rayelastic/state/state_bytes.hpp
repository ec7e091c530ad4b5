// Exported state as bytes, little-endian and without padding, whatever the table is that they are of:
//   header   magic (the format and its version), layout of the table, number of keys, bytes after the header (8 bytes each)
//   per key  key length (4), 1 if null (1), key bytes, then what the table writes
//   records  their bytes (a long text's pointer as zero), then the bytes of their long texts
// Equal state has equal bytes: unused ones are zero.
// Reading trusts nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/record/schema.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/state_table.hpp"
#include "rayelastic/state/text_rooms.hpp"

namespace rayelastic {

using StateMagic = char[8];

// Throws StateError for bytes that can't be what is kept at a place; empty where they may be anything, as those of a text.
using TextCheck = std::function<void(const StringView& bytes)>;

// Of the texts of a field: those that aren't bytes are valid UTF-8, which all that reads them counts on.
[[nodiscard]] TextCheck check_of_texts(Type type);

// Records of fixed size, with texts (or what is kept like one) at some places.
struct RecordShape {
  std::size_t size = 0;
  std::span<const std::size_t> texts = {};
  std::span<const TextCheck> checks = {};  // of the texts, in their order; none: all may be anything
  const Schema* schema = nullptr;          // of records whose unused bytes anything may have written

  // From bytes that StateReader::record() gave to a record whose texts are in `rooms`.
  void restore(const std::byte* exported, std::byte* record, TextRooms& rooms) const;
};

struct StateHeader {
  StateMagic magic;
  std::uint64_t layout;
  std::uint64_t keys;
  std::uint64_t bytes;
};

class StateWriter {
 public:
  // `expected`: about as many bytes will come; no more than some megabytes are set aside for them.
  StateWriter(const StateMagic& magic, std::uint64_t layout, std::size_t expected);

  void key(const StringView& key);
  // Where they are, until the next call.
  std::byte* append(const void* data, std::size_t size);
  template <typename Number>
  void number(Number value) {
    append(&value, sizeof value);
  }
  void record(const std::byte* record, const RecordShape& shape);
  // Those that another one wrote, and nothing else of it.
  void append_keys(const StateWriter& other);
  [[nodiscard]] std::uint64_t keys() const noexcept { return header_.keys; }
  // What was written so far, without the header.
  [[nodiscard]] std::vector<std::byte> body() const { return {bytes_.begin() + sizeof header_, bytes_.end()}; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::vector<std::byte> finish();

 private:
  StateHeader header_;
  std::vector<std::byte> bytes_;
};

// Throws StateError for what isn't as it should be.
class StateReader {
 public:
  StateReader(std::span<const std::byte> bytes, const StateMagic& magic, std::uint64_t layout);

  [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }
  // Points into the bytes. Never one that `extractor` couldn't have made.
  [[nodiscard]] StringView key(const KeyExtractor& extractor);
  [[nodiscard]] const std::byte* take(std::size_t size);
  [[nodiscard]] const std::byte* record(const RecordShape& shape);
  template <typename Number>
  [[nodiscard]] Number number() {
    Number value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t keys_ = 0;
};

// The number of keys of an export, by its header. Throws StateError for bytes that have none.
[[nodiscard]] std::uint64_t keys_in(std::span<const std::byte> bytes);

// Throws StateError for a key that the extractor can't have made: to restore it would be out of bounds.
void check_key(const KeyExtractor& extractor, const StringView& key);

// Throws StateError if two of the keys are the same.
void check_distinct(std::span<const StringView> keys);

}  // namespace rayelastic
