#include "values/value_codec.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace rayelastic::python {

namespace {

using Kind = ValueForm::Kind;

PyObject* damaged(const std::exception& error) { return PyErr_Format(PyExc_ValueError, "a value came damaged: %s", error.what()); }

PyTypeObject* type_in(PyObject* known) noexcept { return reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(known, 0)); }

std::string name_of(PyObject* type) { return reinterpret_cast<PyTypeObject*>(type)->tp_name; }

}  // namespace

ValueCodec::ValueCodec(ValueForm form, PyObject* known)
    : form_(std::move(form)), scalar_(form_.type, form_.format), known_(ObjectRef::share(known)) {
  if (is_plain()) return;
  if (known == nullptr || !PyTuple_Check(known))
    throw std::invalid_argument("nobody said which Python values '" + form_.format + "' stands for");
  const auto size = static_cast<std::size_t>(PyTuple_GET_SIZE(known));
  const auto child = [this](std::size_t index, PyObject* of) { children_.emplace_back(form_.children[index], of); };
  const auto needs = [&](bool fits) {
    if (!fits) throw std::invalid_argument("what Python knows of '" + form_.format + "' doesn't fit it");
  };
  switch (form_.kind) {
    case Kind::Enum:
      needs(size == form_.members.size());
      numbers_ = ObjectRef::take(PyDict_New());
      for (std::size_t i = 0; i < size; ++i) {
        const ObjectRef number = ObjectRef::take(PyLong_FromSize_t(i));
        needs(PyDict_SetItem(numbers_.get(), PyTuple_GET_ITEM(known, static_cast<Py_ssize_t>(i)), number.get()) == 0);
      }
      return;
    case Kind::List:
      needs(size == 2);
      child(0, PyTuple_GET_ITEM(known, 1));
      return;
    case Kind::Map:
      needs(size == 2);
      child(0, PyTuple_GET_ITEM(known, 0));
      child(1, PyTuple_GET_ITEM(known, 1));
      return;
    case Kind::Struct: {
      needs(size == 3 && PyType_Check(PyTuple_GET_ITEM(known, 0)) && PyTuple_Check(PyTuple_GET_ITEM(known, 2)));
      PyObject* const fields = PyTuple_GET_ITEM(known, 2);
      needs(static_cast<std::size_t>(PyTuple_GET_SIZE(fields)) == form_.children.size());
      for (std::size_t i = 0; i < form_.children.size(); ++i) child(i, PyTuple_GET_ITEM(fields, static_cast<Py_ssize_t>(i)));
      return;
    }
    default:
      needs(size == 2);
  }
}

PyObject* ValueCodec::decode(ValueBytes bytes) const {
  try {
    switch (form_.kind) {
      case Kind::Plain:
        return is_variable() ? scalar_.decode(bytes.data(), bytes.size())
                             : scalar_.decode(reinterpret_cast<const std::byte*>(bytes.data()));
      case Kind::Enum:
        return decode_enum(bytes);
      case Kind::List:
        return decode_list(bytes);
      case Kind::Struct:
        return decode_struct(bytes);
      case Kind::Map:
        return decode_map(bytes);
      default:
        return decode_made(bytes);
    }
  } catch (const ValueError& error) {
    return damaged(error);
  }
}

PyObject* ValueCodec::decode_enum(ValueBytes bytes) const {
  std::int32_t number;
  std::memcpy(&number, bytes.data(), sizeof number);
  if (number < 0 || number >= PyTuple_GET_SIZE(known_.get())) throw ValueError("a value is no member of its enum");
  return Py_NewRef(PyTuple_GET_ITEM(known_.get(), number));
}

PyObject* ValueCodec::decode_list(ValueBytes bytes) const {
  const SequenceView items(bytes, form_.children[0]);
  const auto size = static_cast<Py_ssize_t>(items.size());
  const bool list = type_in(known_.get()) == &PyList_Type;
  ObjectRef made = ObjectRef::take(list ? PyList_New(size) : PyTuple_New(size));
  if (!made) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    PyObject* item = items.is_valid(at) ? children_[0].decode(items.at(at)) : Py_NewRef(Py_None);
    if (item == nullptr) return nullptr;
    list ? PyList_SET_ITEM(made.get(), i, item) : PyTuple_SET_ITEM(made.get(), i, item);
  }
  return Py_NewRef(made.get());
}

PyObject* ValueCodec::decode_struct(ValueBytes bytes) const {
  const StructView fields(bytes, form_);
  const auto size = static_cast<Py_ssize_t>(children_.size());
  PyTypeObject* const type = type_in(known_.get());
  const bool is_tuple = PyTuple_GET_ITEM(known_.get(), 1) == Py_True;
  ObjectRef made = ObjectRef::take(is_tuple ? type->tp_alloc(type, size) : PyTuple_New(size));
  if (!made) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    PyObject* value = fields.is_valid(at) ? children_[at].decode(fields.at(at)) : Py_NewRef(Py_None);
    if (value == nullptr) return nullptr;
    PyTuple_SET_ITEM(made.get(), i, value);
  }
  return is_tuple ? Py_NewRef(made.get()) : PyObject_CallObject(reinterpret_cast<PyObject*>(type), made.get());
}

PyObject* ValueCodec::decode_map(ValueBytes bytes) const {
  const MapView map = map_view(bytes, form_);
  const ObjectRef made = ObjectRef::take(PyDict_New());
  if (!made) return nullptr;
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const ObjectRef key = ObjectRef::take(children_[0].decode(map.keys.at(i)));
    if (!key) return nullptr;
    const ObjectRef value = ObjectRef::take(map.values.is_valid(i) ? children_[1].decode(map.values.at(i)) : Py_NewRef(Py_None));
    if (!value || PyDict_SetItem(made.get(), key.get(), value.get()) != 0) return nullptr;
  }
  return Py_NewRef(made.get());
}

PyObject* ValueCodec::decode_made(ValueBytes bytes) const {
  const ObjectRef raw = ObjectRef::take(scalar_.decode(bytes.data(), bytes.size()));
  return raw ? PyObject_CallOneArg(PyTuple_GET_ITEM(known_.get(), 0), raw.get()) : nullptr;
}

bool ValueCodec::put(PyObject* value, std::byte* to, Refusal& refusal) const {
  if (form_.kind != Kind::Enum) return scalar_.encode(value, to, refusal);
  PyObject* const member = PyTuple_GET_ITEM(known_.get(), 0);
  PyObject* number = Py_TYPE(value) == Py_TYPE(member) ? PyDict_GetItemWithError(numbers_.get(), value) : nullptr;
  if (number == nullptr) return PyErr_Occurred() != nullptr ? refusal.raised() : refusal.wrong(value, Py_TYPE(member)->tp_name);
  const auto narrow = static_cast<std::int32_t>(PyLong_AsLong(number));
  std::memcpy(to, &narrow, sizeof narrow);
  return true;
}

bool ValueCodec::append(PyObject* value, std::string& out, Refusal& refusal) const {
  try {
    switch (form_.kind) {
      case Kind::List:
        return append_list(value, out, refusal);
      case Kind::Struct:
        return append_struct(value, out, refusal);
      case Kind::Map:
        return append_map(value, out, refusal);
      case Kind::Plain: {
        GivenBytes given;
        if (!scalar_.bytes_of(value, given, refusal)) return false;
        out.append(given.data, given.size);
        return true;
      }
      default:
        return append_made(value, out, refusal);
    }
  } catch (const ValueError&) {
    return refusal.refused(value, "which is longer than 4 GiB");
  }
}

bool ValueCodec::give(PyObject* value, ValueWriter& writer, std::string& out, Refusal& refusal) const {
  if (value == Py_None) {
    if (!form_.nullable) return refusal.refused(value, "and it isn't nullable: declare it as '<type> | None'");
    writer.absent();
    return true;
  }
  if (!is_variable()) return put(value, reinterpret_cast<std::byte*>(writer.fixed()), refusal);
  writer.begin();
  if (!append(value, out, refusal)) return false;
  writer.end();
  return true;
}

bool ValueCodec::append_list(PyObject* value, std::string& out, Refusal& refusal) const {
  const bool list = type_in(known_.get()) == &PyList_Type;
  if (!PyList_Check(value) && !PyTuple_Check(value)) return refusal.wrong(value, list ? "list" : "tuple");
  const ObjectRef items = ObjectRef::take(PySequence_Tuple(value));  // what is inside can't change while Python code runs
  if (!items) return refusal.raised();
  const Py_ssize_t size = PyTuple_GET_SIZE(items.get());
  ValueWriter writer(out, form_.children[0], static_cast<std::size_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (children_[0].give(PyTuple_GET_ITEM(items.get(), i), writer, out, refusal)) continue;
    std::string path("[");  // appended: GCC 12 takes operator+ in front of it for an overlap
    path.append(std::to_string(i)).append("]").append(refusal.path);
    refusal.path = std::move(path);
    return false;
  }
  return true;
}

// The value of a field: of a tuple by its place, of a dict by name, of an instance of the class by name.
ObjectRef ValueCodec::field_of(PyObject* value, std::size_t index, Refusal& refusal) const {
  const std::string& name = form_.children[index].name;
  if (PyTuple_Check(value)) return ObjectRef::share(PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(index)));
  if (PyDict_Check(value)) return ObjectRef::share(PyDict_GetItemString(value, name.c_str()));
  ObjectRef found = ObjectRef::take(PyObject_GetAttrString(value, name.c_str()));
  if (!found) (void)refusal.raised();
  return found;
}

bool ValueCodec::append_struct(PyObject* value, std::string& out, Refusal& refusal) const {
  PyObject* const type = PyTuple_GET_ITEM(known_.get(), 0);
  const auto size = static_cast<Py_ssize_t>(children_.size());
  const bool is_tuple = PyTuple_GET_ITEM(known_.get(), 1) == Py_True;
  const bool fits =
      PyDict_Check(value) || (is_tuple ? PyTuple_Check(value) && PyTuple_GET_SIZE(value) == size : PyObject_IsInstance(value, type) == 1);
  if (!fits) return PyErr_Occurred() != nullptr ? refusal.raised() : refusal.wrong(value, name_of(type));
  ValueWriter writer(out, form_);
  for (std::size_t i = 0; i < children_.size(); ++i) {
    ObjectRef field = field_of(value, i, refusal);
    if (refusal.kind == Refusal::Kind::Raised) return false;
    if (!field) field = ObjectRef::share(Py_None);  // a dict without it
    if (children_[i].give(field.get(), writer, out, refusal)) continue;
    refusal.path = "." + form_.children[i].name + refusal.path;
    return false;
  }
  return true;
}

bool ValueCodec::append_map(PyObject* value, std::string& out, Refusal& refusal) const {
  if (!PyDict_Check(value)) return refusal.wrong(value, "dict");
  const auto half = [&](const ObjectRef& items, const ValueCodec& codec, const char* what) {
    if (!items) return refusal.raised();
    const Py_ssize_t size = PyList_GET_SIZE(items.get());
    ValueWriter writer(out, codec.form_, static_cast<std::size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (codec.give(PyList_GET_ITEM(items.get(), i), writer, out, refusal)) continue;
      refusal.path = what + refusal.path;
      return false;
    }
    return true;
  };
  const ObjectRef keys = ObjectRef::take(PyDict_Keys(value));
  const ObjectRef values = ObjectRef::take(PyDict_Values(value));
  MapWriter map(out);
  if (!half(keys, children_[0], ".key")) return false;
  map.keys_written();
  return half(values, children_[1], ".value");
}

bool ValueCodec::append_made(PyObject* value, std::string& out, Refusal& refusal) const {
  const ObjectRef made = ObjectRef::take(PyObject_CallOneArg(PyTuple_GET_ITEM(known_.get(), 1), value));
  if (!made) return refusal.raised();
  GivenBytes given;
  if (!scalar_.bytes_of(made.get(), given, refusal)) {
    refusal.value = ObjectRef::share(value);
    return false;
  }
  out.append(given.data, given.size);
  return true;
}

}  // namespace rayelastic::python
