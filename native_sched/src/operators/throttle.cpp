#include "rayelastic/operators/delay.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "operator/waiting.hpp"
#include "rayelastic/operators/schedule.hpp"

namespace rayelastic {

namespace {

using Clock = std::chrono::steady_clock;

struct Throttle {
  std::size_t stride;
  std::size_t part;  // records
  Schedule schedule;
};

std::int64_t process(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Throttle*>(state);
  const auto* record = static_cast<const std::byte*>(in);
  for (auto left = static_cast<std::size_t>(n); left > 0;) {
    const std::size_t count = std::min(left, self.part);
    if (!wait_until(self.schedule.next(count, Clock::now()), context)) return REL_STOPPED;
    if (!context->emit(0, record, static_cast<std::int64_t>(count))) return REL_STOPPED;
    record += count * self.stride;
    left -= count;
  }
  return 0;
}

}  // namespace

OperatorSpec make_throttle(std::string name, std::shared_ptr<const Schema> schema, double per_second) {
  if (!(per_second > 0) || !std::isfinite(per_second))
    throw std::invalid_argument("operator '" + name + "': it can't pass on " + std::to_string(per_second) + " records a second");
  const double due = per_second * std::chrono::duration<double>(kWaitSlice).count();
  const auto part = std::max<std::size_t>(1, static_cast<std::size_t>(std::min(due, 1e9)));
  auto self = std::make_shared<Throttle>(Throttle{schema->record_size(), part, Schedule(per_second)});
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.state = std::move(self);
  spec.input = schema;
  spec.output = std::move(schema);
  return spec;
}

}  // namespace rayelastic
