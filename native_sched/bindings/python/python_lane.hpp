// Operators whose function is a Python callable over a run: one call per run, under the Python token (architecture section 4,
// lanes python and vectorised). The engine enters the token before it calls process and leaves it within every flush, so results are
// complete, in a buffer of the lane's own, before the first one is submitted.
#pragma once

#include <Python.h>

#include <memory>
#include <string>
#include <vector>

#include "python/gate/python_failure.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/keyless_state.hpp"
#include "state/object_states.hpp"

namespace rayelastic::python {

enum class View : std::uint8_t {
  Tuples,  // list of tuples in; list of tuples, or of bools for a filter, out
  Numpy,   // structured array in; array, column, {name: column}, or bool mask out
  Arrow    // pyarrow.RecordBatch in; the same, or bool mask out
};

struct PythonFunction {
  std::string name;
  PyObject* function = nullptr;  // borrowed
  std::shared_ptr<const Schema> input;
  std::shared_ptr<const Schema> output;
  PyObject* input_type = nullptr;  // borrowed; NamedTuple class, or null for plain tuples
  View view = View::Tuples;
  std::uint32_t flags = 0;
  std::shared_ptr<ObjectStates> states;  // null: no keyed state
};

// GIL. The operator, and where its exception will be. Throws std::invalid_argument for flags, views and schemas of no sense.
[[nodiscard]] std::shared_ptr<Operator> make_python_operator(const PythonFunction& function, std::shared_ptr<PythonFailure> failure);

// A Python function over runs of several ports. The callable gets what it is called for and returns a sequence with one result for
// each output port, None for none:
//   disjunctive: function(port, run[, list of states]); conjunctive: function(firings, list of a run for each port);
//   with REL_ON_FINISH, at the end of the input: function(-1, None);
//   with REL_ON_WATERMARK, when its watermark has advanced: function(-2, watermark);
//   with REL_ON_COMMAND, by Scheduler::poke, without the token: function(-3, None).
struct PythonPorts {
  std::string name;
  PyObject* function = nullptr;  // borrowed
  std::vector<std::shared_ptr<const Schema>> inputs;
  std::vector<std::shared_ptr<const Schema>> outputs;
  std::vector<PyObject*> input_types;  // borrowed; one for each input port
  View view = View::Tuples;
  std::uint32_t flags = 0;  // REL_ON_FINISH, REL_ON_WATERMARK, REL_ON_COMMAND
  std::vector<Demand> demands;
  std::shared_ptr<ObjectStates> states;        // null: no keyed state; it has the keys of the first port
  std::vector<std::vector<std::string>> keys;  // of each input port
  using Time = std::pair<std::string, std::int64_t>;
  std::vector<Time> times = {};       // of further input ports: field and shift of the event time, where keys live by it
  std::shared_ptr<KeylessState> own;  // what its object keeps; null: nothing, or by key
  bool letters = false;               // the last output port takes dead letters: (number of the input, error) pairs
};

// GIL. Throws std::invalid_argument for ports of no sense.
[[nodiscard]] std::shared_ptr<Operator> make_python_ports(const PythonPorts& function, std::shared_ptr<PythonFailure> failure);

// GIL. A source: function() gives an iterator of tuples. With REL_NEEDS_TOKEN in flags the iterator must never wait for anything;
// without, it may block, holding neither token nor GIL while it does. A stop raises GeneratorExit where it waits in Python code.
[[nodiscard]] std::shared_ptr<Operator> make_python_source(const PythonFunction& function, std::shared_ptr<PythonFailure> failure);

// GIL. A sink whose function gets a pyarrow.RecordBatch of up to `batch_rows` rows.
[[nodiscard]] std::shared_ptr<Operator> make_batch_sink(const PythonFunction& function, std::size_t batch_rows,
                                                        std::shared_ptr<PythonFailure> failure);

}  // namespace rayelastic::python
