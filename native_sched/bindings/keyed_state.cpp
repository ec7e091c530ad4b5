// rayelastic._native.KeyedState: the table of a keyed operator, of records (compiled lane) or of Python values (python lane).
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <span>
#include <stdexcept>

#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

std::span<const std::byte> bytes_in(const nb::bytes& bytes) { return {static_cast<const std::byte*>(bytes.data()), bytes.size()}; }

nb::bytes export_range(KeyedStateObject& self, std::uint64_t low, std::uint64_t high) {
  if (self.objects != nullptr) {
    PyObject* pickled = self.objects->export_range(low, high);
    if (pickled == nullptr) throw nb::python_error();
    return nb::steal<nb::bytes>(pickled);
  }
  const std::vector<std::byte> exported = self.table->export_range(low, high);
  return nb::bytes(exported.data(), exported.size());
}

std::size_t import_range(KeyedStateObject& self, const nb::bytes& bytes) {
  if (self.objects == nullptr) return self.table->import_range(bytes_in(bytes));
  const Py_ssize_t imported = self.objects->import_range(bytes.ptr());
  if (imported < 0) throw nb::python_error();
  return static_cast<std::size_t>(imported);
}

}  // namespace

void bind_keyed_state(nb::module_& module) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  nb::class_<KeyedStateObject>(module, "KeyedState",
                               "The state of a keyed operator. Read and moved only while the operator isn't running; size at any time.")
      .def(
          "__init__",
          [](KeyedStateObject* self, const SchemaObject& schema, const std::vector<std::string>& keys, std::size_t state_size,
             const nb::bytes& initial, const std::vector<std::size_t>& text_offsets) {
            new (self)
                KeyedStateObject{std::make_shared<KeyedState>(schema.schema, keys, state_size, bytes_in(initial), text_offsets), nullptr};
          },
          nb::arg("schema"), nb::arg("keys"), nb::arg("state_size"), nb::arg("initial"),
          nb::arg("text_offsets") = std::vector<std::size_t>(),
          nb::sig("def __init__(self, schema: Schema, keys: collections.abc.Sequence[str], state_size: int, initial: bytes, text_offsets: "
                  "collections.abc.Sequence[int] = ()) -> None"),
          "State records of state_size bytes, a copy of initial for a new key; text_offsets: where string views are in them.")
      .def_static(
          "objects",
          [](const SchemaObject& schema, const std::vector<std::string>& keys, nb::object factory) {
            if (PyCallable_Check(factory.ptr()) == 0)
              throw std::invalid_argument("the factory of keyed state must be callable without arguments");
            auto objects = std::make_shared<ObjectStates>(schema.schema, keys, factory.ptr());
            return KeyedStateObject{std::shared_ptr<KeyedState>(objects, &objects->table()), objects};
          },
          nb::arg("schema"), nb::arg("keys"), nb::arg("factory"),
          nb::sig("def objects(schema: Schema, keys: collections.abc.Sequence[str], factory: collections.abc.Callable[[], typing.Any]) -> "
                  "KeyedState"),
          "Any Python value per key, made by factory() when the key comes first.")
      .def_prop_ro(
          "size", [](const KeyedStateObject& self) { return self.table->size(); }, "Keys.")
      .def_prop_ro(
          "used_bytes", [](const KeyedStateObject& self) { return self.table->bytes(); }, "Memory in use, without what Python values hold.")
      .def("export", export_range, nb::arg("low") = std::uint64_t{0}, nb::arg("high") = kAll,
           "State of the keys whose hash is in [low, high]. Python values are pickled: only ever import what you trust.")
      .def("import_", import_range, nb::arg("data"),
           "All or nothing; ValueError for keys that are here already. Returns the number of keys.")
      .def(
          "remove",
          [](KeyedStateObject& self, std::uint64_t low, std::uint64_t high) {
            return self.objects != nullptr ? self.objects->remove_range(low, high) : self.table->remove_range(low, high);
          },
          nb::arg("low") = std::uint64_t{0}, nb::arg("high") = kAll, "Forgets the keys whose hash is in [low, high]; returns how many.");
}

}  // namespace rayelastic::python
