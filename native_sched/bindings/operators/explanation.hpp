// Why compiled code failed on a record, as the user's own Python says it.
#pragma once

#include <memory>
#include <string>

#include "python/gate/python_gate.hpp"
#include "rayelastic/operator/tolerant.hpp"
#include "record/object_ref.hpp"
#include "record/record_codec.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

// Why a compiled function failed on a record: explain(tuple) -> str. The thread comes without the GIL.
inline Explain explanation(const std::string& name, const std::shared_ptr<const Schema>& input, nb::object function) {
  struct Explaining {
    ObjectRef function;
    std::unique_ptr<RecordCodec> codec;
  };
  std::shared_ptr<Explaining> kept(new Explaining{ObjectRef::share(function.ptr()), std::make_unique<RecordCodec>(name, input, nullptr)},
                                   [](Explaining* self) {
                                     const GilScope gil;
                                     if (gil) delete self;
                                   });
  return [kept](const std::byte* record) -> std::string {
    const GilScope gil;
    if (!gil) return {};
    PyObject* tuple = kept->codec->decode_one(record);
    PyObject* text = tuple != nullptr ? PyObject_CallOneArg(kept->function.get(), tuple) : nullptr;
    const char* characters = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
    std::string reason = characters != nullptr ? characters : "it failed for an unknown reason";
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(tuple);
    return reason;
  };
}

}  // namespace rayelastic::python
