// Channels: a stream is dealt out to several copies of the same operators, which run at the same time, and comes together again. The user
// has fixed their number (parallel, M20), or it changes while they run: the elastic operator of IPDPS'09 (S01-S13) and ElasticLoadBalance
// (L01-L08). Knows neither who decides on the number nor what the channels do; that each has a thread is the threading model's doing.
//
// Where it deviates: IPDPS'09 has one queue that all workers take from (S03). Here each channel has a short one, and what has no room
// in one goes to the next that has (L02), so that none has work while another is idle; the submitting thread helps when all are full (P17).
//
// Order: the part of a run that goes to one channel is a turn. Behind it, in the same channel, goes a Turn mark with its number. Whatever a channel
// makes of a turn, fewer records or more, is in front of the mark when that comes out; so the other end gives out what it has turn by turn.
// Then channels take turns strictly, whether they have room or not: the slowest one holds all, and what waits to be put in order is no more
// than what fits into the channels.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// How many channels get records: the first `active()` of them. Any thread.
class ChannelWidth {
 public:
  ChannelWidth(std::size_t channels, std::size_t active) : channels_(std::max<std::size_t>(channels, 1)) { set(active); }

  [[nodiscard]] std::size_t channels() const noexcept { return channels_; }
  // Relaxed: any number is right, the last one that was set is better.
  [[nodiscard]] std::size_t active() const noexcept { return active_.load(std::memory_order_relaxed); }
  void set(std::size_t active) noexcept { active_.store(std::clamp<std::size_t>(active, 1, channels_), std::memory_order_relaxed); }

 private:
  const std::size_t channels_;
  std::atomic<std::size_t> active_{1};
};

// One output port for each channel. ordered: with Turn marks. Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_channels(std::string name, std::shared_ptr<const Schema> schema,
                                                      std::shared_ptr<ChannelWidth> width, bool ordered);
// Ordered, each record to the channel that the hash of its keys says, of all there are: a turn is what goes to the same one without a break.
[[nodiscard]] std::shared_ptr<Operator> make_keyed_channels(std::string name, std::shared_ptr<const Schema> schema,
                                                            std::span<const std::string> keys, std::size_t channels);
// The other end: one input port for each channel; gives the turns in order. What comes behind a channel's last Turn mark is given at the end.
[[nodiscard]] std::shared_ptr<Operator> make_in_turn(std::string name, std::shared_ptr<const Schema> schema, std::size_t channels);

}  // namespace rayelastic
