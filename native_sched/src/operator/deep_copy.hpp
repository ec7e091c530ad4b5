// Copies records with their texts, which go into one fresh chunk: what the papers' engine does with every tuple that it queues (for benchmarks
// alone), and what a buffer of records is restored with.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

class DeepCopy {
 public:
  explicit DeepCopy(std::shared_ptr<const Schema> schema);
  // Copies records and texts; the result owns the texts (null if all are inline).
  [[nodiscard]] ChunkRef copy(const Run& run);
  // The copied records, until the next copy().
  [[nodiscard]] const std::byte* records() const noexcept { return records_.data(); }

 private:
  const std::shared_ptr<const Schema> schema_;
  std::vector<std::size_t> text_offsets_;
  std::vector<std::byte> records_;
};

}  // namespace rayelastic
