#include "state/object_copy.hpp"

#include <thread>
#include <utility>

#include "python/gate/python_failure.hpp"

namespace rayelastic::python {

namespace {

constexpr int kPickleProtocol = 5;

// For so long the reader keeps an operator from its lookups, and all others from the GIL: a fraction of the 5 ms after which Python itself
// has its threads take turns. Behind it the reader makes way for whoever waits.
constexpr std::chrono::microseconds kSlice{250};
constexpr std::chrono::microseconds kRest{100};

}  // namespace

Turn::Turn(std::mutex& turns) : lock_(turns, std::try_to_lock) {
  if (lock_.owns_lock()) return;
  const WithoutGil released;
  lock_.lock();
}

Pickler::Pickler() : protocol_(ObjectRef::take(PyLong_FromLong(kPickleProtocol))) {
  const ObjectRef module = ObjectRef::take(PyImport_ImportModule("pickle"));
  dumps_ = ObjectRef::take(module ? PyObject_GetAttrString(module.get(), "dumps") : nullptr);
  if (dumps_ && protocol_) return;
  PythonFailure failure;
  throw StateError("pickle isn't importable: " + failure.keep());
}

ObjectRef Pickler::operator()(PyObject* value) const {
  ObjectRef bytes = ObjectRef::take(PyObject_CallFunctionObjArgs(dumps_.get(), value, protocol_.get(), nullptr));
  if (!bytes) {
    PythonFailure failure;
    throw StateError("a value can't be pickled: " + failure.keep());
  }
  if (PyBytes_GET_SIZE(bytes.get()) > static_cast<Py_ssize_t>(UINT32_MAX))
    throw StateError("a value has more than 4 GiB when it is pickled");
  return bytes;
}

ObjectRef ObjectCopying::bytes_of(PyObject* value) {
  if (!told_) return pickled(value);
  const auto [at, fresh] = taken_.try_emplace(value);
  return fresh ? pickled(value) : std::move(at->second);
}

void ObjectCopying::keep(PyObject* value) {
  const auto [at, fresh] = taken_.try_emplace(value);
  if (fresh) at->second = pickled(value);
}

// The operator goes on, whatever its values are: what it can't pickle ends the copy.
ObjectRef ObjectCopying::pickled(PyObject* value) {
  if (!failure_.empty()) return {};
  try {
    return pickler_(value);
  } catch (const StateError& error) {
    failure_ = error.what();
    return {};
  }
}

void ObjectCopying::enter() {
  lock_ = std::unique_lock(turns_);
  gil_.emplace();
  if (!*gil_) {
    leave();
    throw StateError("the interpreter is gone");
  }
  until_ = std::chrono::steady_clock::now() + kSlice;
}

void ObjectCopying::leave() noexcept {
  gil_.reset();
  if (lock_.owns_lock()) lock_.unlock();
}

void ObjectCopying::rest() {
  check();
  if (std::chrono::steady_clock::now() < until_) return;
  leave();
  std::this_thread::sleep_for(kRest);
  enter();
}

void ObjectCopying::check() const {
  if (!failure_.empty()) throw StateError(failure_);
}

std::optional<StateChunk> ObjectCopy::next_chunk(std::size_t max_bytes) {
  struct Inside {
    ObjectCopying& copying;
    ~Inside() { copying.leave(); }
  };
  const WithoutGil released;
  copying_->enter();
  const Inside inside{*copying_};
  std::optional<StateChunk> chunk = keys_->next_chunk(max_bytes);
  copying_->check();
  return chunk;
}

void ObjectCopy::abandon() noexcept {
  const WithoutGil released;  // the reader may wait for it
  keys_->abandon();
}

}  // namespace rayelastic::python
