// A Python function's answers in place of those that compiled code can't give (recovery.hpp).
#pragma once

#include <Python.h>

#include <memory>
#include <string>

#include "rayelastic/operator/recovery.hpp"

namespace rayelastic::python {

// answer(tuple) -> the sequence of what it gives, or None. output null: of a filter, which gives a truth value. GIL.
[[nodiscard]] std::shared_ptr<Answers> make_answers(const std::string& name, const std::shared_ptr<const Schema>& input,
                                                    const std::shared_ptr<const Schema>& output, PyObject* answer);

}  // namespace rayelastic::python
