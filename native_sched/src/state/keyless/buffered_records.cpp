#include "state/keyless/buffered_records.hpp"

#include <cstddef>
#include <span>
#include <vector>

#include "operator/deep_copy.hpp"
#include "rayelastic/assert.hpp"
#include "rayelastic/record/chunk.hpp"
#include "rayelastic/state/text_rooms.hpp"

namespace rayelastic {

void BufferedRecords::write(const RecordBuffer& records, StateWriter& writer) const {
  RE_CHECK(records.stride() == schema_->record_size());
  writer.number(static_cast<std::uint64_t>(records.size()));
  const std::byte* record = records.front(records.size()).records;
  for (std::size_t i = 0; i < records.size(); ++i, record += records.stride()) writer.record(record, shapes_.shape());
}

std::uint64_t BufferedRecords::read(StateReader& reader, RecordBuffer* records) const {
  const auto count = reader.number<std::uint64_t>();
  const std::size_t stride = schema_->record_size();
  std::vector<std::byte> found;
  TextRooms texts;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::byte* const exported = reader.record(shapes_.shape());
    if (records == nullptr) continue;
    found.resize(found.size() + stride);
    shapes_.shape().restore(exported, found.data() + found.size() - stride, texts);
  }
  if (records == nullptr || count == 0) return count;
  RE_CHECK(found.size() == count * stride);
  DeepCopy copy(schema_);
  const ChunkRef chunk = copy.copy({.records = found.data(), .count = static_cast<std::size_t>(count), .stride = stride});
  Chunk* const kept[] = {chunk.get()};
  const std::span<Chunk* const> chunks = chunk ? std::span<Chunk* const>(kept) : std::span<Chunk* const>();
  records->append({.records = copy.records(), .count = static_cast<std::size_t>(count), .stride = stride, .chunks = chunks},
                  static_cast<std::size_t>(count));
  return count;
}

}  // namespace rayelastic
