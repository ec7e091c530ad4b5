// The links that a router has been attached to, and those that it leaves.
//
// Invariant: an interrupt reaches every link that is there, also one that is still saying goodbye, which it does in a thread of its own.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "rayelastic/net/link.hpp"

namespace rayelastic {

class RouterLinks {
 public:
  void add(const std::shared_ptr<Link>& link) {
    std::erase_if(links_, [](const auto& known) { return known.expired(); });
    links_.emplace_back(link);
  }
  void interrupt() noexcept {
    for (const auto& known : links_) {
      if (const auto link = known.lock()) link->interrupt();
    }
  }
  // Waits for the peer's answer elsewhere.
  void say_goodbye(std::shared_ptr<Link> link) {
    std::erase_if(goodbyes_, [](const auto& goodbye) { return goodbye.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    goodbyes_.push_back(std::async(std::launch::async, [link = std::move(link)]() mutable {
      (void)link->finish();
      link.reset();
    }));
  }

 private:
  std::vector<std::weak_ptr<Link>> links_;
  std::vector<std::future<void>> goodbyes_;
};

}  // namespace rayelastic
