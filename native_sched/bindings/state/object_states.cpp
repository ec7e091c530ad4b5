#include "state/object_states.hpp"

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/gate/python_failure.hpp"
#include "python/gate/python_gate.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "record/object_ref.hpp"

namespace rayelastic::python {

namespace {

constexpr std::array<std::byte, sizeof(PyObject*)> kNoObject{};

PyObject*& object_in(void* slot) noexcept { return *static_cast<PyObject**>(slot); }

constexpr StateMagic kMagic = {'R', 'E', 'L', 'P', 'I', 'C', 'K', '1'};
// GIL. The Python error that is set, as a StateError.
[[noreturn]] void raise_error(const std::string& what) {
  PythonFailure failure;
  throw StateError(what + ": " + failure.keep());
}

void append_pickled(PyObject* bytes, StateWriter& writer) {
  const auto length = static_cast<std::uint32_t>(PyBytes_GET_SIZE(bytes));
  (void)writer.append(&length, sizeof length);
  (void)writer.append(PyBytes_AS_STRING(bytes), length);
}

}  // namespace

ObjectStates::ObjectStates(std::shared_ptr<const Schema> input, const std::vector<std::string>& keys, PyObject* factory,
                           const TimeToLive& ttl, bool told, bool unpickles)
    : table_(std::move(input), keys, sizeof(PyObject*), kNoObject, {}, ttl),
      factory_(Py_NewRef(factory)),
      told_(told),
      unpickles_(unpickles) {}

ObjectStates::~ObjectStates() {
  const GilScope gil;
  if (!gil) return;  // the interpreter is gone, and all objects with it
  begin_run(kNoWatermark, 0);
  table_.for_each([](const StringView&, std::byte* state) { Py_XDECREF(object_in(state)); });
  Py_DECREF(factory_);
}

void ObjectStates::put(void* slot, PyObject* value) {
  if (told_ && value != nullptr) slots_[value] = slot;
  object_in(slot) = value;
}

PyObject* ObjectStates::take(void* slot) {
  if (told_) slots_.erase(object_in(slot));
  return std::exchange(object_in(slot), nullptr);
}

void ObjectStates::begin_run(std::int64_t watermark, std::size_t records) {
  std::vector<PyObject*> dropped;
  table_.begin_run(watermark, records, [this, &dropped](void* state) { dropped.push_back(take(state)); });
  for (PyObject* object : dropped) Py_XDECREF(object);  // a finaliser may run anything: the table is whole again
}

PyObject* ObjectStates::values(void* const* slots, std::size_t count, std::size_t* failed) {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(count));
  if (list == nullptr) {
    *failed = 0;
    return nullptr;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (object_in(slots[i]) == nullptr) put(slots[i], PyObject_CallNoArgs(factory_));
    PyObject* const object = object_in(slots[i]);
    if (object == nullptr) {
      Py_DECREF(list);
      *failed = i;
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), Py_NewRef(object));
  }
  return list;
}

PyObject* ObjectStates::all_values() {
  PyObject* list = PyList_New(0);
  bool done = list != nullptr;
  table_.for_each([&](const StringView&, std::byte* state) {
    if (done && object_in(state) != nullptr) done = PyList_Append(list, object_in(state)) == 0;
  });
  if (!done) Py_CLEAR(list);
  return list;
}

std::uint64_t ObjectStates::layout() const noexcept { return table_.layout(); }

std::vector<std::byte> ObjectStates::export_chunk(const KeySelection& selected, std::uint64_t& at, std::size_t max_bytes) {
  const GilScope gil;
  if (!gil) throw StateError("the interpreter is gone");
  StateWriter writer(kMagic, layout(), max_bytes);
  const std::int64_t now = table_.now_for_touches();
  at = table_.for_each_of(selected, at, [&](const StringView& key, std::byte* state) {
    if (writer.keys() > 0 && writer.size() >= max_bytes) return false;
    PyObject* object = object_in(state);
    if (object == nullptr || !table_.is_live(state, now)) return true;
    const ObjectRef bytes = pickler_(object);
    writer.key(key);
    table_.write_touch(state, writer, now);
    append_pickled(bytes.get(), writer);
    return true;
  });
  return writer.finish();
}

std::shared_ptr<StateCopy> ObjectStates::begin_copy() {
  const WithoutGil released;  // whoever reads the last copy may wait for it
  auto copying = std::make_shared<ObjectCopying>(turns_, pickler_, told_);
  const auto write = [this, copying, now = table_.now_for_touches()](const StringView& key, const std::byte* state, StateWriter& writer) {
    PyObject* const object = *reinterpret_cast<PyObject* const*>(state);
    if (object == nullptr || !table_.is_live(state, now)) return;
    const ObjectRef bytes = copying->bytes_of(object);
    if (!bytes) return;
    writer.key(key);
    table_.write_touch(state, writer, now);
    append_pickled(bytes.get(), writer);
  };
  auto keys = table_.begin_copy(
      {.magic = &kMagic, .layout = layout(), .write = write, .tells_all_changes = !told_ && !table_.ages(), .rest = [copying] {
         copying->rest();
       }});
  copying_ = copying;
  return std::make_shared<ObjectCopy>(std::move(keys), std::move(copying));
}

void ObjectStates::will_change(PyObject* value) {
  if (!table_.is_copied()) {
    copying_.reset();
    return;
  }
  const Turn turn(turns_);
  copying_->keep(value);
}

void ObjectStates::forget(std::span<PyObject* const> values) {
  std::vector<PyObject*> dropped;
  {
    const Turn turn(turns_);
    for (PyObject* const value : values) {
      const auto found = slots_.find(value);
      if (found == slots_.end()) continue;
      void* const slot = found->second;
      table_.will_change(slot);  // a copy has the key as it was
      dropped.push_back(take(slot));
      table_.remove(slot);
    }
  }
  for (PyObject* object : dropped) Py_DECREF(object);  // a finaliser may run anything: the table is whole again
}

std::size_t ObjectStates::import_range(std::span<const std::byte> bytes) {
  const GilScope gil;
  if (!gil) throw StateError("the interpreter is gone");
  const ObjectRef pickle = ObjectRef::take(PyImport_ImportModule("pickle"));
  const ObjectRef loads = ObjectRef::take(pickle ? PyObject_GetAttrString(pickle.get(), "loads") : nullptr);
  if (!loads) raise_error("pickle isn't importable");
  StateReader reader(bytes, kMagic, layout());
  std::vector<StringView> keys;
  std::vector<std::int64_t> touches;
  std::vector<ObjectRef> values;
  std::set<std::string_view> seen;  // of `keys`, which stay where they are
  bool seen_null = false;
  keys.reserve(static_cast<std::size_t>(reader.keys()));
  for (std::uint64_t i = 0; i < reader.keys(); ++i) {
    keys.push_back(reader.key(table_.extractor()));
    if (table_.find(keys.back()) != nullptr) throw StateError("exported state has a key that is here already");
    const bool fresh = is_null_key(keys.back()) ? !std::exchange(seen_null, true) : seen.insert(keys.back().view()).second;
    if (!fresh) throw StateError("exported state has a key twice");
    touches.push_back(table_.read_touch(reader));
    const auto length = reader.number<std::uint32_t>();
    const auto* pickled = reinterpret_cast<const char*>(reader.take(length));
    if (unpickles_) {
      const ObjectRef view = ObjectRef::take(PyMemoryView_FromMemory(const_cast<char*>(pickled), length, PyBUF_READ));
      values.push_back(ObjectRef::take(view ? PyObject_CallOneArg(loads.get(), view.get()) : nullptr));
    } else {
      values.push_back(ObjectRef::take(PyBytes_FromStringAndSize(pickled, length)));
    }
    if (!values.back()) raise_error("a value can't be unpickled");
  }
  if (!reader.empty()) throw StateError("exported state has bytes after its last key");
  const Turn turn(turns_);
  std::vector<void*> slots(keys.size());
  table_.lookup_keys(keys.data(), keys.size(), slots.data(), touches.data());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    PyObject* old = take(slots[i]);
    put(slots[i], Py_NewRef(values[i].get()));
    Py_XDECREF(old);
  }
  ++changes_;
  return keys.size();
}

std::size_t ObjectStates::remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) {
  const GilScope gil;
  if (!gil) {
    at = 0;
    return 0;
  }
  std::vector<PyObject*> dropped;
  std::size_t removed = 0;
  {
    const Turn turn(turns_);
    removed = table_.remove_chunk(keys, at, max_keys, [this, &dropped](std::byte* state) {
      if (object_in(state) != nullptr) dropped.push_back(take(state));
    });
  }
  ++changes_;
  for (PyObject* object : dropped) Py_DECREF(object);  // a finaliser may run anything: the table is whole again
  return removed;
}

}  // namespace rayelastic::python
