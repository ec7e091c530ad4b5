// What the Python classes of rayelastic._native hold. Each keeps a shared_ptr to the core's object instead of being it, so
// that the core never owns a Python reference and its threads can drop the last owner without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>

#include "python/gate/python_failure.hpp"
#include "rayelastic/arrow/arrow_feeder.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/net/link.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/record/schema.hpp"
#include "state/object_states.hpp"

namespace rayelastic::python {

namespace nb = nanobind;

struct SchemaObject {
  std::shared_ptr<const Schema> schema;
};

// How to have an operator pause while its state is worked on. Without the GIL, which may be long in coming: the operator shall not wait for it.
struct OperatorPause {
  class Refused : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };

  std::weak_ptr<Scheduler> owner;  // its last owner must not have the GIL: its threads may need that to come to their end
  OperatorId id = 0;
  std::chrono::nanoseconds timeout{};

  // No GIL. Throws Refused if it doesn't come to its safe point in time; what `work` throws.
  template <typename Work>
  auto during(Work&& work) const {
    const std::shared_ptr<Scheduler> scheduler = owner.lock();
    if (scheduler == nullptr) throw Refused("the PE has stopped");
    if (const std::string refusal = scheduler->hold({id}, false, timeout); !refusal.empty()) throw Refused(refusal);
    struct End {
      Scheduler& scheduler;
      OperatorId id;
      ~End() { scheduler.let_go({id}); }  // others may be held for a checkpoint
    } const end{*scheduler, id};
    return work();
  }

  // A work for `during`. Throws StateError, too.
  void take_in_parts() const {
    const std::shared_ptr<Scheduler> scheduler = owner.lock();
    if (scheduler == nullptr) throw Refused("the PE has stopped");
    if (const std::string refusal = scheduler->take_in_parts(id, timeout); !refusal.empty()) throw Refused(refusal);
  }
};

struct KeyedStateObject {
  std::shared_ptr<StateTable> store;
  std::shared_ptr<KeyedState> records = {};    // null unless it is one of records that a compiled function may have
  std::shared_ptr<ObjectStates> objects = {};  // null unless it is one of Python values
};

// A time to live as Python gives it: ticks (0: none), field of the event time (empty: by the clock), ticks to be added to it; since 'last',
// 'first' or 'change'.
using GivenTtl = std::tuple<std::int64_t, std::string, std::int64_t, std::string>;
inline TimeToLive ttl_of(const GivenTtl& given) {
  const std::string& since = std::get<3>(given);
  const Touch touch = since == "first" ? Touch::First : since == "change" ? Touch::Change : Touch::Each;
  return {.ticks = std::get<0>(given), .field = std::get<1>(given), .shift = std::get<2>(given), .touch = touch};
}

struct StateCopyObject {
  std::shared_ptr<StateCopy> copy;
};

struct OwnAggregateObject {
  std::shared_ptr<OwnAggregate> aggregate;
};

struct FeederObject {
  std::shared_ptr<ArrowFeeder> feeder;
};

struct LinkObject {
  std::shared_ptr<Link> link;
};

struct TlsObject {
  std::shared_ptr<Tls> tls;
};

struct OperatorObject {
  std::shared_ptr<Operator> op;
  Placement placement = {};
  std::shared_ptr<PythonFailure> failure = nullptr;              // of operators that call Python
  std::shared_ptr<std::atomic<std::int64_t>> counter = nullptr;  // of count sinks
};

void bind_schema(nb::module_& module);
void bind_json_lines(nb::module_& module);
void bind_keyed_state(nb::module_& module);
void bind_arrow(nb::module_& module);
void bind_link(nb::module_& module);
void bind_tls(nb::module_& module);
void bind_own_aggregate(nb::module_& module);
void bind_operator(nb::module_& module);  // after bind_own_aggregate
void bind_routing(nb::module_& module);
void bind_timed_operators();              // after bind_operator
void bind_windows(nb::module_& module);   // likewise
void bind_latency();                      // likewise
void bind_held();                         // likewise
void bind_concurrent();                   // likewise
void bind_processes();                    // likewise
void bind_channels(nb::module_& module);  // likewise
void bind_kafka(nb::module_& module);     // likewise
void bind_scheduler_values(nb::module_& module);
void bind_scheduler(nb::module_& module);  // after bind_scheduler_values
void bind_symbols(nb::module_& module);
void bind_succession(nb::module_& module);  // after bind_operator

}  // namespace rayelastic::python
