// Records that Python has given, on their way into the engine. Touches no PyObject: the engine leaves the Python token, and with it the GIL,
// whenever something is submitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/schema.hpp"

namespace rayelastic::python {

// Records whose long texts lie in one buffer of their own. Until emit, such a view's pointer is an offset into `text`;
// texts lie in record order, so any stretch of records has one contiguous stretch of text.
struct EncodedRecords {
  std::vector<std::byte> records;
  std::vector<char> text;
  std::size_t count = 0;

  void clear() noexcept { records.clear(), text.clear(), count = 0; }
};

// Submits `encoded` through `out` (room for `capacity` records), flushing whenever it is full. Returns what a
// rel_process returns: records left in `out`, or REL_STOPPED.
[[nodiscard]] std::int64_t emit(const Schema& schema, EncodedRecords& encoded, std::byte* out, std::int64_t capacity, rel_context* context);

}  // namespace rayelastic::python
