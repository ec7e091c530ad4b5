// Learns from timed runs how long runs may be, so that each is work for a bounded time. A producer blocks the others during its run: a
// queue whose producer works for 50 ms on a run and then emits 256 records at once is empty or full, never both busy.
//
// A call may cost something whatever the length of its run (a Python function that takes arrays, a model, a poll of a broker). Were runs
// only cut to the bound, such a cost would be divided by fewer and fewer records, each then looks dearer, and runs end at one record. So
// costs are kept by length, in powers of two, and runs are never cut to a length that makes records dearer by more than kFair.
// Knows neither clocks nor operators.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rayelastic {

class RunLength {
 public:
  // `bound_ns`: time that a run may take. `most`: records of the longest run.
  RunLength(std::uint64_t bound_ns, std::size_t most) : bound_ns_(static_cast<double>(bound_ns)), most_(most), longest_(most) {}

  // Records that a run may have from now on, 1 to `most`.
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }

  // Nobody knows what a record costs: the first run is to tell.
  void begin_with_one() noexcept { longest_ = 1; }

  // What was seen says nothing of runs to come, which may take `bound_ns`.
  void forget(std::uint64_t bound_ns) noexcept {
    bound_ns_ = static_cast<double>(bound_ns);
    costs_.fill(0);
    above_ = 0;
  }

  // A run of `records` (1 or more) took `ns`.
  void saw(std::size_t records, std::uint64_t ns) noexcept {
    const std::size_t of = class_of(records);
    const double cost = static_cast<double>(std::max<std::uint64_t>(ns, 1)) / static_cast<double>(records);
    double& known = costs_[of];
    if (known == 0 || cost < known) {
      known = cost;
      above_ = 0;
    } else {
      // Down at once, up slowly: what makes a measurement wrong (a thread preempted, a page touched for the first time) makes it long,
      // and by any factor. What two in a row say is believed: there is other work behind whoever makes the runs, as where a queue went.
      // All lengths go up: a busy machine isn't a reason for longer runs.
      const double ratio = cost / known;
      const double rise = std::min(ratio, std::max(kRise, above_));
      for (double& each : costs_) each *= rise;
      above_ = ratio / rise;
    }
    const std::size_t now = class_of(longest_);
    longest_ = choose(costs_[now] > 0 ? costs_[now] : known);
    if (++seen_ % kForget != 0) return;
    for (std::size_t other = 0; other < costs_.size(); ++other) {
      if (other != class_of(longest_)) costs_[other] = 0;
    }
  }

 private:
  static constexpr double kFair = 1.25;
  static constexpr double kRise = 1.06;          // of a cost by one measurement, at most
  static constexpr std::uint32_t kForget = 512;  // measurements; then other lengths are tried again
  static constexpr std::size_t kClasses = 32;

  [[nodiscard]] static std::size_t class_of(std::size_t records) noexcept {
    return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(records)) - 1, kClasses - 1);
  }

  [[nodiscard]] std::size_t choose(double cost) const noexcept {
    auto length = static_cast<std::size_t>(std::clamp(bound_ns_ / cost, 1.0, static_cast<double>(most_)));
    for (; length < most_; length = std::min(2 * length, most_)) {
      const std::size_t of = class_of(length);
      double best = 0;
      for (std::size_t longer = of + 1; longer < kClasses; ++longer) {
        if (costs_[longer] > 0 && (best == 0 || costs_[longer] < best)) best = costs_[longer];
      }
      if (best == 0) return std::min(2 * length, most_);  // nobody has seen a longer one
      if (costs_[of] == 0 || costs_[of] <= kFair * best) break;
    }
    return length;
  }

  double bound_ns_;
  const std::size_t most_;
  std::size_t longest_;
  std::uint32_t seen_ = 0;
  double above_ = 0;                      // how far the last measurement was above what was known, and is still
  std::array<double, kClasses> costs_{};  // ns a record, by the length's power of two; 0: not seen
};

}  // namespace rayelastic
