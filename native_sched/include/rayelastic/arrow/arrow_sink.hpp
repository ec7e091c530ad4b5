// A sink that hands its input over as Arrow record batches: to Python (a list, a table, Parquet, CSV, Spark) by way of the
// bindings, which take the Python token inside the call, once a batch. Knows nothing of them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "rayelastic/arrow/arrow_c.h"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// Takes over array and schema (what it leaves unreleased is released for it). 0, or non-zero with an explanation in `error`.
using ArrowConsumer = int (*)(void* user, ArrowArray* array, ArrowSchema* schema, char* error, std::size_t error_size);

// Calls consume(user, ...) for each `batch_rows` rows, and for the rest when the input ends; never for nothing.
[[nodiscard]] std::shared_ptr<Operator> make_arrow_sink(std::string name, std::shared_ptr<const Schema> input, ArrowConsumer consume,
                                                        std::shared_ptr<void> user, std::size_t batch_rows);

// Flushes the rows that an Arrow sink has buffered; does nothing for other operators. The operator must be held or have ended.
// Returns why that failed, or an empty text.
[[nodiscard]] std::string flush_arrow_sink(Operator& op);

}  // namespace rayelastic
