#include "rayelastic/operators/delay.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "operator/waiting.hpp"

namespace rayelastic {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLongest = 1e9;  // seconds that a record takes: far enough away, and the clock doesn't overflow

struct Throttle {
  std::size_t stride = 0;
  double per_second = 0;
  std::size_t part = 1;                              // records
  Clock::time_point due = Clock::time_point::min();  // of the next part
};

std::int64_t process(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Throttle*>(state);
  const auto* record = static_cast<const std::byte*>(in);
  for (auto left = static_cast<std::size_t>(n); left > 0;) {
    if (!wait_until(self.due, context)) return REL_STOPPED;
    const std::size_t count = std::min(left, self.part);
    const std::chrono::duration<double> takes(std::min(static_cast<double>(count) / self.per_second, kLongest));
    self.due = std::max(self.due, Clock::now()) + std::chrono::duration_cast<Clock::duration>(takes);
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
  auto self = std::make_shared<Throttle>();
  self->stride = schema->record_size();
  self->per_second = per_second;
  self->part = std::max<std::size_t>(1, static_cast<std::size_t>(std::min(due, 1e9)));
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.state = std::move(self);
  spec.input = schema;
  spec.output = std::move(schema);
  return spec;
}

}  // namespace rayelastic
