// A table of keys as it was at a moment, read by another thread while its operator goes on (copy on write, as of the memory of a process that
// forks). Made by StateTable::begin_copy(), which costs nothing by key: what the operator is about to change it keeps aside first, the rest is
// read where it is.
//
// A table consists of segments, parts of some megabytes that keys don't leave. Whoever has kept what an earlier copy gave of a segment that
// hasn't changed since skips it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rayelastic {

struct StateChunk {
  std::size_t segment = 0;
  std::vector<std::byte> bytes = {};  // an export of its own (state_table.hpp)
};

class StateCopy {
 public:
  StateCopy() = default;
  virtual ~StateCopy() = default;
  StateCopy(const StateCopy&) = delete;
  StateCopy& operator=(const StateCopy&) = delete;

  // --- one thread at a time; the table has to be there
  // 1 for the first copy of the table, and so on.
  [[nodiscard]] virtual std::uint64_t number() const noexcept = 0;
  // By segment the number of the last copy before its last change; 0: none. What an earlier copy gave of it is right if that has a higher number.
  [[nodiscard]] virtual std::vector<std::uint64_t> changed_after() const = 0;
  // It won't be given.
  virtual void skip(std::size_t segment) = 0;
  // What hasn't been given yet, segment by segment, each key once, about max_bytes. Something once at least if nothing was skipped; nothing when
  // all has been given.
  [[nodiscard]] virtual std::optional<StateChunk> next_chunk(std::size_t max_bytes) = 0;

  // Nobody wants the rest: the operator needn't keep anything any more. Any thread.
  virtual void abandon() noexcept = 0;
};

}  // namespace rayelastic
