// A sink that only counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// `counter` may be read by any thread at any time.
[[nodiscard]] std::shared_ptr<Operator> make_count_sink(std::string name, std::shared_ptr<const Schema> input,
                                                        std::shared_ptr<std::atomic<std::int64_t>> counter);

}  // namespace rayelastic
