// Why compiled code failed on a record, as the user's own Python says it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "python/gate/python_gate.hpp"
#include "rayelastic/operator/tolerant.hpp"
#include "record/object_ref.hpp"
#include "record/record_codec.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

// Why a compiled function failed on records of these schemas: explain(tuple, ...) -> str. The thread comes without the GIL.
inline std::function<std::string(std::initializer_list<const std::byte*>)> explanation_of(
    const std::string& name, std::initializer_list<std::shared_ptr<const Schema>> schemas, const nb::object& function) {
  struct Explaining {
    ObjectRef function;
    std::vector<std::unique_ptr<RecordCodec>> codecs;
  };
  std::shared_ptr<Explaining> kept(new Explaining{ObjectRef::share(function.ptr()), {}}, [](Explaining* self) {
    const GilScope gil;
    if (gil) delete self;
  });
  for (const std::shared_ptr<const Schema>& schema : schemas) kept->codecs.push_back(std::make_unique<RecordCodec>(name, schema, nullptr));
  return [kept](std::initializer_list<const std::byte*> records) -> std::string {
    const GilScope gil;
    if (!gil) return {};
    std::vector<ObjectRef> tuples;
    std::vector<PyObject*> arguments;
    for (const std::byte* record : records) {
      tuples.push_back(ObjectRef::take(kept->codecs[tuples.size()]->decode_one(record)));
      arguments.push_back(tuples.back().get());
      if (arguments.back() == nullptr) break;
    }
    const ObjectRef text = ObjectRef::take(
        arguments.back() != nullptr ? PyObject_Vectorcall(kept->function.get(), arguments.data(), arguments.size(), nullptr) : nullptr);
    const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    std::string reason = characters != nullptr ? characters : "it failed for an unknown reason";
    PyErr_Clear();
    return reason;
  };
}

// The same of one record.
inline Explain explanation(const std::string& name, const std::shared_ptr<const Schema>& input, const nb::object& function) {
  return [explain = explanation_of(name, {input}, function)](const std::byte* record) { return explain({record}); };
}

}  // namespace rayelastic::python
