// Exports the records of a RecordBuffer: their number (8), then each with its texts.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "operator/record_buffer.hpp"
#include "rayelastic/record/schema.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "state/record_pool.hpp"

namespace rayelastic {

class BufferedRecords {
 public:
  explicit BufferedRecords(std::shared_ptr<const Schema> schema) : schema_(std::move(schema)), shapes_(schema_) {}

  // Of what the records are.
  [[nodiscard]] std::uint64_t layout() const noexcept { return shapes_.layout(); }
  void write(const RecordBuffer& records, StateWriter& writer) const;
  // Appends them to `records`, where that isn't null; how many they are. Throws StateError for what they can't be.
  std::uint64_t read(StateReader& reader, RecordBuffer* records) const;

 private:
  std::shared_ptr<const Schema> schema_;
  RecordPool shapes_;  // knows the shape, and holds nothing
};

}  // namespace rayelastic
