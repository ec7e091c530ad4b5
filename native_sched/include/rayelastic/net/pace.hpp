// How many records a second came by, over the last second or so: what a router lets in while it holds some of them back.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rayelastic {

// Used by one thread at a time. Looks at the clock once in kLook runs.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // `records` have come by, in so many runs.
  void passed(std::size_t records, std::uint32_t runs = 1) noexcept {
    records_ += records;
    runs_ += runs;
    if (runs_ < kLook) return;
    runs_ = 0;
    look(Clock::now());
  }

  // The same at a time of the caller's.
  void look(Clock::time_point now) noexcept {
    if (began_ == Clock::time_point{}) begin(now);
    const std::chrono::duration<double> took = now - began_;
    if (took < kWindow) return;
    per_second_ = static_cast<double>(records_) / took.count();
    begin(now);
  }

  // Records that come in `time`, 1 at least, and no bound as long as too little was seen: `most`.
  [[nodiscard]] std::size_t records_in(std::chrono::duration<double> time, Clock::time_point now, std::size_t most) const noexcept {
    const std::chrono::duration<double> seen = now - began_;
    double per_second = per_second_;
    if (began_ != Clock::time_point{} && seen >= kEnough) per_second = std::max(per_second, static_cast<double>(records_) / seen.count());
    const double records = per_second * time.count();
    return records <= 0 || records >= static_cast<double>(most) ? most : std::max<std::size_t>(static_cast<std::size_t>(records), 1);
  }

  // What comes from now on counts, and nothing of before.
  void begin(Clock::time_point now) noexcept {
    began_ = now;
    records_ = 0;
  }

 private:
  static constexpr std::uint32_t kLook = 16;
  static constexpr std::chrono::duration<double> kWindow{1.0};
  static constexpr std::chrono::duration<double> kEnough{0.2};

  std::uint32_t runs_ = kLook - 1;  // the first one begins it
  std::uint64_t records_ = 0;       // since began_
  Clock::time_point began_;
  double per_second_ = 0;  // of the window before; 0: there was none
};

}  // namespace rayelastic
