// Joins of two streams by key, and the merge of several by time. Native, over records; knows neither queues nor threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/days.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

enum class JoinKind : std::uint8_t {
  Latest,    // with the latest right record of the key, as of the left one's time; without times: that there is when the left one comes
  First,     // with the first one, likewise
  All,       // with all that there are, likewise
  Interval,  // with the right ones whose time lies from `before` before the left one's to `after` after it
  Window,    // with those in the same window [k * before, (k + 1) * before)
  Pairs      // with all of the key, whenever they come, as SQL has it; without times
};

struct JoinOptions {
  JoinKind kind = JoinKind::Latest;
  std::vector<std::string> left_keys = {};
  std::vector<std::string> right_keys = {};
  std::vector<std::string> right_fields = {};  // that the output has, after all fields of the left
  std::string left_time = {};                  // empty: by arrival, or Pairs
  std::string right_time = {};
  std::int64_t left_shift = 0;  // ticks to be added to the times
  std::int64_t right_shift = 0;
  std::int64_t before = 0;  // ticks
  std::int64_t after = 0;
  bool left_outer = false;   // left records without a match are given too, what is of the right being null
  bool right_outer = false;  // right ones too, likewise but for the keys: once nothing can match them any more
  bool symmetric =
      false;  // by arrival: left ones are kept as right ones are, and each record is joined with what is kept of the other side
  WindowTimes times = {};  // of Window: where windows start
  TimeToLive ttl = {};     // not of Interval and Window: after how long without a record of either side a key begins anew
};

// Input port 0 is the left, port 1 the right. A key with a null field matches nothing. Pairs keeps the records of a side as long as the other
// one may have more, so it gives the same records whatever the order in which they come; those without a match once the other side has ended.
// Joins by time give what they give when the watermark says that all matches are there, in the
// order of the left records' times (those of equal times as they came), right ones in the order of theirs: however the job runs. Left
// records that come too late leave by output port 1. With a time to live, what is kept of a key is dropped once neither side has had a record of
// it for longer, after those of Pairs without a match were given: by the records' times, or else by the clock (then poke it now and then). A key
// begins with a record that is kept. Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_join(std::string name, std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                                                  std::shared_ptr<const Schema> output, const JoinOptions& options);

// Each record of input port 0 with the latest record of every key of port 1, in the order of the keys' bytes: as of its time, or, without
// times, that there is when it comes. `left_keys` alone say which of several replicas has it; what comes by port 1 is the same in all of
// them, and belongs to no key. Otherwise as make_join. Of the options kind, before, after, right_outer and symmetric say nothing; with a
// time to live a key of port 1 ends that long after its latest record.
[[nodiscard]] std::shared_ptr<Operator> make_cross_join(std::string name, std::shared_ptr<const Schema> left,
                                                        std::shared_ptr<const Schema> right, std::shared_ptr<const Schema> output,
                                                        const JoinOptions& options);

// Records of all input ports in the order of their times; of equal times in the order of ports, then as they came. Late ones leave by
// output port 1. Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_merge(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports,
                                                   const std::string& time, std::int64_t shift);

}  // namespace rayelastic
