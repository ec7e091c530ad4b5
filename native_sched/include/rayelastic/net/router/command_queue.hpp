// The commands of a router: posted by any thread, carried out by the one that runs it.
//
// Invariant: commands are carried out and answered in the order of their tickets, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/link.hpp"

namespace rayelastic {

enum class RouterAnswer : std::uint8_t { Done, Late, Refused, Ended };  // Late: not yet; it may still be done

struct RouterCommand {
  enum class Kind : std::uint8_t { Hold, Route, Attach, Detach };

  Kind kind = Kind::Hold;
  std::uint64_t epoch = 0;
  std::vector<std::uint16_t> partitions = {};
  std::uint16_t target = 0;
  std::int64_t mark = 0;
  std::shared_ptr<Link> link = {};
};

class CommandQueue {
 public:
  // Returns its ticket.
  std::uint64_t post(RouterCommand command) {
    RE_CHECK(!closed_);
    commands_.push_back(std::move(command));
    return ++tickets_;
  }
  // Returns the ticket of one that is answered at once: nothing is carried out any more.
  std::uint64_t post_late() {
    RE_CHECK(closed_ && commands_.empty());
    ++tickets_;
    answer(RouterAnswer::Ended);
    return tickets_;
  }
  [[nodiscard]] bool empty() const noexcept { return commands_.empty(); }
  // The oldest one, which answer() is for.
  [[nodiscard]] RouterCommand take() {
    RE_CHECK(!commands_.empty() && answered_ + commands_.size() == tickets_);
    RouterCommand command = std::move(commands_.front());
    commands_.pop_front();
    return command;
  }
  void answer(RouterAnswer answer) {
    RE_CHECK(answered_ < tickets_);
    answers_.push_back(answer);
    ++answered_;
    if (answers_.size() > kKeptAnswers) answers_.pop_front();
  }
  // None: it has none yet. Refused: it had one long ago.
  [[nodiscard]] std::optional<RouterAnswer> answer_to(std::uint64_t ticket) const noexcept {
    if (answered_ < ticket) return std::nullopt;
    RE_CHECK(answered_ <= tickets_ && answers_.size() <= answered_);
    const std::uint64_t age = answered_ - ticket;
    return age < answers_.size() ? answers_[answers_.size() - 1 - age] : RouterAnswer::Refused;
  }
  // All that was sent has arrived.
  void close() noexcept { closed_ = true; }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

 private:
  static constexpr std::size_t kKeptAnswers = 1024;

  std::deque<RouterCommand> commands_;
  std::deque<RouterAnswer> answers_;  // of the last tickets up to answered_
  std::uint64_t tickets_ = 0;
  std::uint64_t answered_ = 0;
  bool closed_ = false;
};

}  // namespace rayelastic
