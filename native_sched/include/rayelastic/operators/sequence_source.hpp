// Records {value: int64[, payload: binary]} with value = 0, 1, 2, ...: the load of benchmarks. Payloads are one shared
// chunk, by reference, so that their size costs nothing but what the engine makes of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// `output` has an int64 field and, if payload_bytes > 0, a string or binary field. Throws std::invalid_argument otherwise.
[[nodiscard]] std::shared_ptr<Operator> make_sequence_source(std::string name, std::shared_ptr<const Schema> output, std::int64_t count,
                                                             std::size_t payload_bytes);

// Has it begin at a value, before it starts: 0 to its count.
void seek_sequence(Operator& source, std::int64_t next);

}  // namespace rayelastic
