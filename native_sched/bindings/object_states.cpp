#include "object_states.hpp"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "python_gate.hpp"

namespace rayelastic::python {

namespace {

constexpr std::array<std::byte, sizeof(PyObject*)> kNoObject{};

PyObject*& object_in(void* slot) noexcept { return *static_cast<PyObject**>(slot); }

// A key as bytes: its 16 bytes as they are when inline (the mark of the null key is among them), else a zero-length view and the text.
PyObject* key_to_bytes(const StringView& key) {
  if (key.is_inline()) return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&key), sizeof key);
  PyObject* bytes = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(sizeof key + key.length));
  if (bytes == nullptr) return nullptr;
  std::memset(PyBytes_AS_STRING(bytes), 0, sizeof key);
  std::memcpy(PyBytes_AS_STRING(bytes) + sizeof key, key.pointer, key.length);
  return bytes;
}

bool key_from_bytes(PyObject* bytes, StringView* key) {
  if (!PyBytes_Check(bytes) || PyBytes_GET_SIZE(bytes) < static_cast<Py_ssize_t>(sizeof *key)) return false;
  const char* data = PyBytes_AS_STRING(bytes);
  const auto text = static_cast<std::size_t>(PyBytes_GET_SIZE(bytes)) - sizeof *key;
  if (text == 0) {
    std::memcpy(static_cast<void*>(key), data, sizeof *key);
    return key->is_inline();
  }
  if (text <= StringView::kInlineBytes || text > UINT32_MAX) return false;
  *key = StringView(data + sizeof *key, static_cast<std::uint32_t>(text));
  return true;
}

PyObject* call_pickle(const char* function, PyObject* argument) {
  PyObject* module = PyImport_ImportModule("pickle");
  if (module == nullptr) return nullptr;
  PyObject* result = std::strcmp(function, "dumps") == 0 ? PyObject_CallMethod(module, function, "Oi", argument, 5)
                                                         : PyObject_CallMethod(module, function, "O", argument);
  Py_DECREF(module);
  return result;
}

}  // namespace

ObjectStates::ObjectStates(std::shared_ptr<const Schema> input, const std::vector<std::string>& keys, PyObject* factory)
    : table_(std::move(input), keys, sizeof(PyObject*), kNoObject), factory_(Py_NewRef(factory)) {}

ObjectStates::~ObjectStates() {
  const GilScope gil;
  if (!gil) return;  // the interpreter is gone, and all objects with it
  table_.for_each([](const StringView&, std::byte* state) { Py_XDECREF(object_in(state)); });
  Py_DECREF(factory_);
}

PyObject* ObjectStates::values(void* const* slots, std::size_t count, std::size_t* failed) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(count));
  if (list == nullptr) {
    *failed = 0;
    return nullptr;
  }
  for (std::size_t i = 0; i < count; ++i) {
    PyObject*& object = object_in(slots[i]);
    if (object == nullptr) object = PyObject_CallNoArgs(factory_);
    if (object == nullptr) {
      Py_DECREF(list);
      *failed = i;
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(object));
  }
  return list;
}

PyObject* ObjectStates::export_range(std::uint64_t low, std::uint64_t high) {
  PyObject* entries = PyList_New(0);
  bool done = entries != nullptr;
  if (done) {
    table_.for_each([&](const StringView& key, std::byte* state) {
      const std::uint64_t hash = KeyedState::hash_of_slot(state);
      PyObject* object = object_in(state);
      if (!done || hash < low || hash > high || object == nullptr) return;
      PyObject* bytes = key_to_bytes(key);
      PyObject* entry = bytes != nullptr ? PyTuple_Pack(2, bytes, object) : nullptr;
      Py_XDECREF(bytes);
      done = entry != nullptr && PyList_Append(entries, entry) == 0;
      Py_XDECREF(entry);
    });
  }
  PyObject* pickled = done ? call_pickle("dumps", entries) : nullptr;
  Py_XDECREF(entries);
  return pickled;
}

Py_ssize_t ObjectStates::import_range(PyObject* bytes) {
  PyObject* entries = call_pickle("loads", bytes);
  if (entries == nullptr) return -1;
  const Py_ssize_t count = PyList_Check(entries) ? PyList_GET_SIZE(entries) : -1;
  std::vector<StringView> keys(count > 0 ? static_cast<std::size_t>(count) : 0);
  bool valid = count >= 0;
  for (Py_ssize_t i = 0; valid && i < count; ++i) {
    PyObject* entry = PyList_GET_ITEM(entries, i);
    valid = PyTuple_Check(entry) && PyTuple_GET_SIZE(entry) == 2 &&
            key_from_bytes(PyTuple_GET_ITEM(entry, 0), &keys[static_cast<std::size_t>(i)]);
    if (valid && table_.find(keys[static_cast<std::size_t>(i)]) != nullptr) {
      Py_DECREF(entries);
      PyErr_SetString(PyExc_ValueError, "state of a key that is here already");
      return -1;
    }
  }
  if (!valid) {
    Py_DECREF(entries);
    PyErr_SetString(PyExc_ValueError, "these bytes are no export of Python keyed state");
    return -1;
  }
  std::vector<void*> slots(keys.size());
  table_.lookup_keys(keys.data(), keys.size(), slots.data());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* old =
        std::exchange(object_in(slots[static_cast<std::size_t>(i)]), Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(entries, i), 1)));
    Py_XDECREF(old);  // a key that the bytes name twice
  }
  Py_DECREF(entries);
  return count;
}

std::size_t ObjectStates::remove_range(std::uint64_t low, std::uint64_t high) {
  std::vector<PyObject*> dropped;
  table_.for_each([&](const StringView&, std::byte* state) {
    const std::uint64_t hash = KeyedState::hash_of_slot(state);
    if (hash >= low && hash <= high && object_in(state) != nullptr) dropped.push_back(std::exchange(object_in(state), nullptr));
  });
  const std::size_t removed = table_.remove_range(low, high);
  for (PyObject* object : dropped) Py_DECREF(object);  // a finaliser may run anything: the table is whole again
  return removed;
}

}  // namespace rayelastic::python
