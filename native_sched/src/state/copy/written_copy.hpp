// A copy of a table that was written when it was asked for: one segment, which has always changed.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rayelastic/state/state_copy.hpp"

namespace rayelastic {

class WrittenCopy final : public StateCopy {
 public:
  WrittenCopy(std::uint64_t number, std::vector<std::vector<std::byte>> chunks) : number_(number), chunks_(std::move(chunks)) {}

  [[nodiscard]] std::uint64_t number() const noexcept override { return number_; }
  [[nodiscard]] std::vector<std::uint64_t> changed_after() const override { return {number_}; }
  void skip(std::size_t /*segment*/) override { next_ = chunks_.size(); }
  [[nodiscard]] std::optional<StateChunk> next_chunk(std::size_t /*max_bytes*/) override {
    if (next_ == chunks_.size()) return std::nullopt;
    return StateChunk{.bytes = std::move(chunks_[next_++])};
  }
  void abandon() noexcept override {}

 private:
  const std::uint64_t number_;
  std::vector<std::vector<std::byte>> chunks_;
  std::size_t next_ = 0;
};

}  // namespace rayelastic
