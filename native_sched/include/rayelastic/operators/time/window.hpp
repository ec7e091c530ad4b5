// Aggregates over windows of a stream, by key: by count, by event time, and sessions. Knows neither queues nor threads.
//
// Records are aggregated once, into panes (slices as long as windows have in common); a window is merged from its panes, so its aggregates
// are exact and records needn't be kept. (Li et al., "No pane, no gain", SIGMOD Record 2005; of count windows by two stacks, as in Tangwongsan,
// Hirzel, Schneider, "Low-latency sliding-window aggregation in worst-case constant time", DEBS 2017, section 2: three merges a pane.)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/operators/time/window_function.hpp"
#include "rayelastic/record/days.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

enum class WindowKind : std::uint8_t {
  Count,     // size records of a key, a new window every slide records; given when it is full
  Time,      // [k * slide, k * slide + size) for whole k, of those in which a key has records; given when the watermark has passed the end
  Session,   // records of a key that are at most size apart from the next; given when the watermark is at size after the last
  Assigned,  // those that a function assigns records to; given when the watermark has passed the end
  Batch      // size records of a key, or those of `within` ticks after the first; of a function, or in_order
};

struct WindowOptions {
  WindowKind kind = WindowKind::Count;
  std::int64_t size = 1;      // records, or ticks
  std::int64_t slide = 1;     // the same; of Count and Time
  std::string time = {};      // the field of the event time; of all but Count
  std::int64_t shift = 0;     // ticks to be added to it
  bool rest = false;          // of Count: at the end, records of a key that were in no window yet are given in one more that isn't full
  std::int64_t lateness = 0;  // of all but Count: ticks for which a window that was given still takes records
  bool punctual = false;      // of all but Count, without a lateness: records behind the watermark are late, whatever their windows
  bool in_order = false;      // of aggregates of Time, Batch, Session without a lateness: taken as a function gets them
  WindowTimes times = {};     // of Time: where windows start
  TimeToLive ttl = {};        // of Count, without `rest`: after how long without a record a key begins anew
  // Of Assigned: emits start and end, of the type of the time, of each window of a record. Null: state is read, and no record comes.
  std::shared_ptr<Operator> assigner = {};
  std::shared_ptr<WindowFunction> function = {};  // in place of aggregates; not of Count
  std::int64_t within = 0;                        // of Batch
  std::int64_t tick = 1;                          // of Batch: what lies between the last record and the end
  // With a function:
  std::int64_t every = 0;                  // ticks after the start of a window, and again, at which it is emitted, if it has new records
  bool update = false;                     // it is emitted after each record
  std::function<std::int64_t()> now = {};  // ticks of the clock, in place of an event time; the operator is to be poked now and then
};

// `output` is the key fields; of all but Count start and end, of the type of the time (a session ends `size` after its last record); then
// one field an aggregate. What is given at once is in the order of its end, then of the keys' hashes: the same however the job runs.
// With a lateness there is a bool behind the end, and windows that were given are kept for so long: a record of one that comes then has it
// given once more, at once, the bool being true; so it is of a session that goes on behind one that was given. Else it is false.
// Records whose windows have all been given, and aren't kept, are late: they leave by output port 1, whose schema is `input`.
// A function gets records in the order of their times: they wait until the watermark has reached them, and those behind it are late, but for
// windows that are kept. By the clock there is no such port, and what is open at the end is emitted. First and last of a window by
// time are those of its first and last pane; inside a pane by order of arrival. Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_window(std::string name, std::shared_ptr<const Schema> input,
                                                    std::shared_ptr<const Schema> output, const std::vector<std::string>& keys,
                                                    const WindowOptions& options, const std::vector<Aggregate>& aggregates);

}  // namespace rayelastic
