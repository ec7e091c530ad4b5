// Joins of two streams by key, and the merge of several by time. Native, over records; knows neither queues nor threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

enum class JoinKind : std::uint8_t {
  Latest,    // with the latest right record of the key, as of the left one's time; without times: that there is when the left one comes
  Interval,  // with the right ones whose time lies from `before` before the left one's to `after` after it
  Window     // with those in the same window [k * before, (k + 1) * before)
};

struct JoinOptions {
  JoinKind kind = JoinKind::Latest;
  std::vector<std::string> left_keys = {};
  std::vector<std::string> right_keys = {};
  std::vector<std::string> right_fields = {};  // that the output has, after all fields of the left
  std::string left_time = {};                  // empty: by arrival, of Latest alone
  std::string right_time = {};
  std::int64_t left_shift = 0;  // ticks to be added to the times
  std::int64_t right_shift = 0;
  std::int64_t before = 0;  // ticks
  std::int64_t after = 0;
  bool outer = false;  // left records without a match are given too, what is of the right being null
};

// Input port 0 is the left, port 1 the right. Joins by time give what they give when the watermark says that all matches are there, in the
// order of the left records' times (those of equal times as they came), right ones in the order of theirs: however the job runs. Left
// records that come too late leave by output port 1. Throws std::invalid_argument, naming the operator.
[[nodiscard]] OperatorSpec make_join(std::string name, std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                                     std::shared_ptr<const Schema> output, const JoinOptions& options);

// Records of all input ports in the order of their times; of equal times in the order of ports, then as they came. Late ones leave by
// output port 1. Throws std::invalid_argument, naming the operator.
[[nodiscard]] OperatorSpec make_merge(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports, const std::string& time,
                                      std::int64_t shift);

}  // namespace rayelastic
