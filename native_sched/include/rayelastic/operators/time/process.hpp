// A user's class with timers of keys, compiled: its methods are called with tuples and timers in the order of their times. Knows neither
// queues nor threads, nor Python.
//
// By event time a tuple waits until the watermark has come to it, and a timer comes behind all tuples of its time: what a key gives depends
// on its tuples alone. By the clock tuples come at once; the operator is to be poked now and then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operator/tolerant.hpp"
#include "rayelastic/state/state_bytes.hpp"

namespace rayelastic {

// What the methods submit to kTimerPort with rel_emit: what is wanted of the timers of the key that they are called for. Of the engine they
// may also ask rel_watermark, which is the time that they are called at, and rel_port, which is 1 once the input has ended.
struct TimerCommand {
  enum What : std::int64_t { At, After, Cancel, Forget };
  std::int64_t what;
  std::int64_t ticks;  // of At and Cancel
  double seconds;      // of After
};
inline constexpr std::int32_t kTimerPort = 1;

// The methods: REL_KEYED functions of one record; null if the class hasn't got it. on_tuple gets records of the input, the others those of
// `moment`.
struct ProcessMethods {
  rel_process on_tuple = nullptr;
  rel_process on_time = nullptr;
  rel_process on_end = nullptr;
};

struct ProcessSchemas {
  std::shared_ptr<const Schema> input;
  std::shared_ptr<const Schema> output;
  std::shared_ptr<const Schema> moment;
};

struct ProcessOptions {
  std::string time = {};              // the field of the event time; empty: by the clock
  std::int64_t shift = 0;             // ticks to be added to it
  double ticks_per_second = 1e6;      // by the clock microseconds since 1970
  std::vector<std::byte> initial;     // the state of a new key: a record, texts of at most 12 bytes
  std::vector<std::size_t> texts;     // where string views are in it
  std::vector<TextCheck> checks;      // one for each of these
  std::function<std::int64_t()> now;  // ticks of the clock
  std::int64_t ttl = 0;               // ticks after the latest record of a key at whose end it is forgotten; 0: never
  bool since_first = false;           // the ticks are since the key's first record
  Explain why_tuple = {};             // on_tuple failed on a record
  Explain why_moment = {};            // and the others
};

// `moment` is the key fields, then the time: of the type of the event time, or int64, or float64 by the clock. By event time, records that
// come too late leave by output port 1, whose schema is `input`. `owner` keeps the methods where they are. Throws std::invalid_argument,
// naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_process(std::string name, const ProcessSchemas& schemas, const std::vector<std::string>& keys,
                                                     const ProcessMethods& methods, ProcessOptions options, std::shared_ptr<void> owner);

}  // namespace rayelastic
