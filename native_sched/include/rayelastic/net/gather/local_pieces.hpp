// What the taps of this PE have put into a gather.
//
// Invariant: pieces leave in the order in which they were put; all that were put are passed on, being passed on, or here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class RecordBuffer;

class LocalPieces {
 public:
  struct Piece {
    std::unique_ptr<RecordBuffer> records;  // null: a mark
    Mark mark = {};
  };

  explicit LocalPieces(std::size_t record_bytes);
  ~LocalPieces();

  void put(const Run& run);
  void put(Mark mark);
  [[nodiscard]] bool is_full() const noexcept { return bytes_ > kMostBytes; }
  [[nodiscard]] bool empty() const noexcept { return pieces_.empty(); }
  [[nodiscard]] const Piece& front() const noexcept { return pieces_.front(); }
  // The first one is being passed on, until pass().
  [[nodiscard]] Piece take();
  void pass() noexcept;
  // How many were put, and how many of them have been passed on.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> flow() const noexcept { return {put_, passed_}; }

 private:
  static constexpr std::size_t kMostBytes = 4U << 20;  // that the local replica may be ahead of the others

  const std::size_t record_bytes_;
  std::deque<Piece> pieces_;
  std::size_t bytes_ = 0;  // of their records
  std::uint64_t put_ = 0;
  std::uint64_t passed_ = 0;
};

}  // namespace rayelastic
