#include "rayelastic/net/gather/local_pieces.hpp"

#include "operator/record_buffer.hpp"
#include "rayelastic/assert.hpp"

namespace rayelastic {

LocalPieces::LocalPieces(std::size_t record_bytes) : record_bytes_(record_bytes) {}

LocalPieces::~LocalPieces() = default;

void LocalPieces::put(const Run& run) {
  auto records = std::make_unique<RecordBuffer>(record_bytes_);
  records->append(run, run.count);
  RE_CHECK(records->size() == run.count);
  bytes_ += records->bytes();
  pieces_.push_back({.records = std::move(records)});
  ++put_;
}

void LocalPieces::put(Mark mark) {
  pieces_.push_back({.records = nullptr, .mark = mark});
  ++put_;
}

LocalPieces::Piece LocalPieces::take() {
  Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  const std::size_t bytes = piece.records == nullptr ? 0 : piece.records->bytes();
  RE_CHECK(bytes <= bytes_);
  bytes_ -= bytes;
  return piece;
}

void LocalPieces::pass() noexcept {
  ++passed_;
  RE_CHECK(passed_ + pieces_.size() == put_);
}

}  // namespace rayelastic
