// How far a link is: which side it is, whether it has failed, and which goodbyes have gone over it.
//
// Invariant: a link is opened for one side, once; its first failure stays; nothing is sent behind a goodbye.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "rayelastic/assert.hpp"

namespace rayelastic {

class LinkState {
 public:
  enum class Side : std::uint8_t { None, Out, In };  // None: no operator uses it yet

  void open(Side side) noexcept {
    RE_CHECK(!is_open() && side != Side::None);
    side_ = side;
    hello_due_ = true;
  }
  [[nodiscard]] bool is_open() const noexcept { return side_ != Side::None; }
  [[nodiscard]] bool is_out() const noexcept { return side_ == Side::Out; }
  [[nodiscard]] bool take_hello() noexcept { return std::exchange(hello_due_, false); }

  void fail(std::string failure) {
    RE_CHECK(failure_.empty() && !failure.empty());
    failure_ = std::move(failure);
  }
  [[nodiscard]] bool has_failed() const noexcept { return !failure_.empty(); }
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  // The socket accepts nothing more.
  void break_output() noexcept { output_broken_ = true; }
  [[nodiscard]] bool is_output_broken() const noexcept { return output_broken_; }

  // Our own goodbye, once all before it is sent; and the peer's.
  void owe_goodbye() noexcept { goodbye_due_ = true; }
  void send_goodbye() noexcept {
    RE_CHECK(goodbye_due_ && !goodbye_sent_);
    goodbye_sent_ = true;
  }
  void receive_goodbye() noexcept { goodbye_received_ = true; }
  [[nodiscard]] bool owes_goodbye() const noexcept { return goodbye_due_; }
  [[nodiscard]] bool has_sent_goodbye() const noexcept { return goodbye_sent_; }
  [[nodiscard]] bool has_received_goodbye() const noexcept { return goodbye_received_; }

 private:
  Side side_ = Side::None;
  bool hello_due_ = false;
  bool output_broken_ = false;
  bool goodbye_due_ = false;
  bool goodbye_sent_ = false;
  bool goodbye_received_ = false;
  std::string failure_;  // empty: none
};

}  // namespace rayelastic
