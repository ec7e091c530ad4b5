#include "rayelastic/operators/count_sink.hpp"

#include <utility>

namespace rayelastic {

namespace {

std::int64_t count_records(const void*, std::int64_t n, void*, std::int64_t, void* state, rel_context*) {
  static_cast<std::atomic<std::int64_t>*>(state)->fetch_add(n, std::memory_order_relaxed);  // a figure: publishes nothing else
  return 0;
}

}  // namespace

OperatorSpec make_count_sink(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<std::atomic<std::int64_t>> counter) {
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = count_records;
  spec.flags = REL_SINK;
  spec.state = std::move(counter);
  spec.input = std::move(input);
  return spec;
}

}  // namespace rayelastic
