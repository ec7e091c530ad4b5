// rayelastic._native.Sample, OperatorSample, InForce, OperatorFailure: the reports of a scheduler, as immutable values.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rayelastic/engine/scheduler.hpp"

namespace rayelastic::python {

namespace nb = nanobind;

// Throws std::invalid_argument for a name that there isn't.
[[nodiscard]] ThreadingModel model_named(const std::string& name);
[[nodiscard]] const char* name_of(ThreadingModel model) noexcept;

// A Sample as Python sees it: times in seconds, operators with their names.
struct SampleObject {
  Sample counted;
  nb::tuple operators;  // of OperatorSampleObject
};

struct OperatorSampleObject {
  std::string name;
  OperatorSample counted;
};

struct InForceObject {
  unsigned thread_count = 0;
  unsigned stuck = 0;
  unsigned unsuspended = 0;
  std::map<OperatorId, std::string> models = {};
};

struct FailureObject {
  Failure failed;
  nb::object record;     // None: there is none, or it can't be shown
  nb::object exception;  // None: no Python function raised
};

// GIL. `names`: of the operators, by number.
[[nodiscard]] SampleObject sample_object(Sample sampled, const std::vector<std::string>& names);
[[nodiscard]] InForceObject in_force_object(const InForce& in_force);

}  // namespace rayelastic::python
