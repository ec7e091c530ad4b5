// The links that come into a gather, each with the thread that receives from it.
//
// Invariant: an arm that has arrived belongs to the thread that runs the source, any other to its own thread; an arm that has ended stays
// until that thread removes it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/link.hpp"

namespace rayelastic {

struct Arm {
  enum class Stage : std::uint8_t { Receiving, Arrived, Ended };

  std::shared_ptr<Link> link;
  std::thread thread;
  Link::Received received = {};
  Stage stage = Stage::Receiving;
  std::optional<std::int64_t> watermark = {};
};

class Arms {
 public:
  [[nodiscard]] Arm& add(std::shared_ptr<Link> link) {
    RE_CHECK(link != nullptr);
    had_any_ = true;
    Arm& arm = *arms_.emplace_back(std::make_unique<Arm>());
    arm.link = std::move(link);
    return arm;
  }
  // What the arm's thread received is there, or nothing more comes.
  void arrive(Arm& arm, bool ended) noexcept {
    RE_CHECK(arm.stage == Arm::Stage::Receiving);
    arm.stage = ended ? Arm::Stage::Ended : Arm::Stage::Arrived;
    ended_ = ended_ || ended;
  }
  [[nodiscard]] std::size_t size() const noexcept { return arms_.size(); }
  // Each of them in rotation.
  [[nodiscard]] Arm& next() noexcept {
    Arm& arm = *arms_[next_++ % arms_.size()];
    RE_CHECK(arm.link != nullptr);
    return arm;
  }
  // Joins their threads, which end without a lock. The one in `turn` stays.
  void remove_ended(const Arm* turn) {
    if (!std::exchange(ended_, false)) return;
    std::erase_if(arms_, [turn](const std::unique_ptr<Arm>& arm) {
      if (arm->stage != Arm::Stage::Ended || arm.get() == turn) return false;
      arm->thread.join();
      return true;
    });
  }
  [[nodiscard]] bool have_ended() const noexcept {
    return std::ranges::all_of(arms_, [](const auto& arm) { return arm->stage == Arm::Stage::Ended; });
  }
  [[nodiscard]] bool had_any() const noexcept { return had_any_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Arm>>& all() const noexcept { return arms_; }

 private:
  std::vector<std::unique_ptr<Arm>> arms_;
  std::size_t next_ = 0;
  bool had_any_ = false;
  bool ended_ = false;  // one has ended since remove_ended()
};

}  // namespace rayelastic
