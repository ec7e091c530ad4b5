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

class ThrottleOperator final : public Operator {
 public:
  ThrottleOperator(std::string name, const std::shared_ptr<const Schema>& schema, double per_second)
      : Operator(std::move(name), {schema}, {schema}), schedule_(per_second) {
    const double due = per_second * std::chrono::duration<double>(kWaitSlice).count();
    part_ = std::max<std::size_t>(1, static_cast<std::size_t>(std::min(due, 1e9)));
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    for (auto left = static_cast<std::size_t>(n); left > 0;) {
      const std::size_t count = std::min(left, part_);
      if (!wait_until(schedule_.next(count, Clock::now()), context)) return REL_STOPPED;
      if (!context->emit(0, in, static_cast<std::int64_t>(count))) return REL_STOPPED;
      in += count * inputs().front()->record_size();
      left -= count;
    }
    return 0;
  }

 private:
  std::size_t part_;  // records that are emitted together
  Schedule schedule_;
};

}  // namespace

std::shared_ptr<Operator> make_throttle(std::string name, std::shared_ptr<const Schema> schema, double per_second) {
  if (!(per_second > 0) || !std::isfinite(per_second))
    throw std::invalid_argument("operator '" + name + "': it can't pass on " + std::to_string(per_second) + " records a second");
  return std::make_shared<ThrottleOperator>(std::move(name), schema, per_second);
}

}  // namespace rayelastic
