// The splits of several streams as those of one: split s of stream p is s * streams + p. A stream that announces none is one, number 0.
// What it knows isn't saved: whoever begins again says it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "rayelastic/operators/time/splits.hpp"

namespace rayelastic {

class JoinedSplits {
 public:
  // tells: by stream, whether its splits count; others are left out.
  explicit JoinedSplits(const std::vector<bool>& tells) {
    for (const bool each : tells) streams_.push_back({.tells = each});
  }
  [[nodiscard]] std::size_t streams() const noexcept { return streams_.size(); }

  // There is this stream.
  void open(std::size_t stream, rel_context* context) const { say(stream, 0, SplitChange::Open, context); }
  // Records of it follow.
  void enter(std::size_t stream, rel_context* context) {
    if (std::exchange(last_, stream) != stream) say(stream, streams_[stream].now, SplitChange::Now, context);
  }
  // It has announced something of its own.
  void pass(std::size_t number, Mark mark, rel_context* context) {
    Stream& stream = streams_[number];
    if (!stream.tells) return;
    const std::int64_t split = split_of(mark);
    if (change_of(mark) == SplitChange::End) {
      end_split(number, split, context);
      return;
    }
    const bool first = !std::exchange(stream.told, true) && split != 0;
    stream.open.insert(split);
    say(number, split, change_of(mark), context);
    if (first) end_split(number, 0, context);  // there was none of that number, or it has ended before
    if (change_of(mark) != SplitChange::Now) return;
    stream.now = split;
    last_ = number;
  }
  // Nothing more comes of it.
  void end(std::size_t stream, rel_context* context) {
    while (!streams_[stream].open.empty()) end_split(stream, *streams_[stream].open.begin(), context);
  }

 private:
  struct Stream {
    bool tells = false;
    bool told = false;                  // its source has said what there is
    std::int64_t now = 0;               // whose records come
    std::set<std::int64_t> open = {0};  // those that haven't ended
  };

  void say(std::size_t stream, std::int64_t split, SplitChange change, rel_context* context) const {
    context->mark(split_mark(split * static_cast<std::int64_t>(streams_.size()) + static_cast<std::int64_t>(stream), change));
  }
  void end_split(std::size_t stream, std::int64_t split, rel_context* context) {
    if (streams_[stream].open.erase(split) > 0) say(stream, split, SplitChange::End, context);
  }

  std::vector<Stream> streams_;
  std::size_t last_ = SIZE_MAX;  // the stream of the last record
};

}  // namespace rayelastic
