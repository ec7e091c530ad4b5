#include "rayelastic/state/keyless_state.hpp"

#include "rayelastic/assert.hpp"
#include "state/copy/written_copy.hpp"

namespace rayelastic {

namespace {

constexpr StateMagic kMagic = {'R', 'E', 'L', 'W', 'H', 'O', 'L', '1'};

}  // namespace

std::vector<std::byte> KeylessState::written() const {
  StateWriter writer(kMagic, layout(), 0);
  write(writer);
  return writer.finish();
}

std::vector<std::byte> KeylessState::export_chunk(const KeySelection& /*keys*/, std::uint64_t& at, std::size_t /*max_bytes*/) {
  at = 0;
  std::vector<std::byte> bytes = written();
  RE_ASSERT(can_read(bytes));
  return bytes;
}

std::shared_ptr<StateCopy> KeylessState::begin_copy() {
  std::vector<std::vector<std::byte>> chunks;
  try {
    chunks.push_back(written());
  } catch (const StateError&) {
    return nullptr;
  }
  return std::make_shared<WrittenCopy>(++copies_, std::move(chunks));
}

// Throws StateError for what import_range doesn't take.
bool KeylessState::can_read(std::span<const std::byte> bytes) {
  StateReader reader(bytes, kMagic, layout());
  if (reader.keys() > 0) throw StateError("exported state has keys, and this operator has none");
  read(reader, false);
  if (!reader.empty()) throw StateError("exported state has bytes after its end");
  return true;
}

std::size_t KeylessState::import_range(std::span<const std::byte> bytes) {
  (void)can_read(bytes);
  StateReader reader(bytes, kMagic, layout());
  read(reader, true);
  RE_CHECK(reader.empty());
  return 0;
}

}  // namespace rayelastic
