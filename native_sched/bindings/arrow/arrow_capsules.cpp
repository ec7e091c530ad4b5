#include "arrow/arrow_capsules.hpp"

#include <cstring>
#include <new>
#include <string>

namespace rayelastic::python {

namespace {

// Moves the contents of an Arrow struct; what is left behind counts as released.
template <typename T>
void move_struct(T* from, T* to) noexcept {
  std::memcpy(to, from, sizeof(T));
  from->release = nullptr;
}

template <typename T>
T* in_capsule(PyObject* capsule, const char* name) {
  auto* content = static_cast<T*>(PyCapsule_GetPointer(capsule, name));
  if (content == nullptr) throw nb::python_error();
  if (content->release == nullptr) throw nb::value_error("this Arrow batch was taken over already");
  return content;
}

template <typename T>
nb::object make_capsule(T* content, const char* name) {
  auto* moved = new T;
  move_struct(content, moved);
  PyObject* capsule = PyCapsule_New(moved, name, [](PyObject* self) {
    auto* owned = static_cast<T*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    if (owned->release != nullptr) owned->release(owned);
    delete owned;
  });
  if (capsule == nullptr) {
    moved->release(moved);
    delete moved;
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

}  // namespace

void import_batch(nb::handle batch, ArrowArray* array, ArrowSchema* schema) {
  if (!nb::hasattr(batch, "__arrow_c_array__")) {
    throw nb::type_error(
        (std::string("expected a pyarrow.RecordBatch or another object with __arrow_c_array__, got ") + Py_TYPE(batch.ptr())->tp_name)
            .c_str());
  }
  const nb::object pair = batch.attr("__arrow_c_array__")();
  if (PyTuple_Check(pair.ptr()) == 0 || PyTuple_GET_SIZE(pair.ptr()) != 2)
    throw nb::type_error("__arrow_c_array__ must return two capsules");
  auto* schema_from = in_capsule<ArrowSchema>(PyTuple_GET_ITEM(pair.ptr(), 0), "arrow_schema");
  auto* array_from = in_capsule<ArrowArray>(PyTuple_GET_ITEM(pair.ptr(), 1), "arrow_array");
  move_struct(schema_from, schema);
  move_struct(array_from, array);
}

nb::object export_batch(ArrowArray* array, ArrowSchema* schema) {
  const nb::object schema_capsule = make_capsule(schema, "arrow_schema");
  const nb::object array_capsule = make_capsule(array, "arrow_array");
  return nb::module_::import_("pyarrow").attr("RecordBatch").attr("_import_from_c_capsule")(schema_capsule, array_capsule);
}

}  // namespace rayelastic::python
