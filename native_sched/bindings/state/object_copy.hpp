// A table of Python values as it was when its copy was begun (state_copy.hpp): the operator pickles the value of a key before it comes to the
// key for the first time, whoever reads the copy pickles the others, a few at a time.
//
// Owners: whoever has the turn may look keys up, or pickle values that aren't taken; the value of a key that is taken is the operator's alone.
//   A run takes the turn for its lookups, not for the calls of the user's function: by then all its keys are taken.
// Deadlock: nobody waits for the turn with the GIL, and whoever has the turn may wait for the GIL.
#pragma once

#include <Python.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "python/gate/python_gate.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "record/object_ref.hpp"

namespace rayelastic::python {

// GIL, which is given up while it waits.
class Turn {
 public:
  explicit Turn(std::mutex& turns);

 private:
  std::unique_lock<std::mutex> lock_;
};

// GIL. A value as bytes; throws StateError for one that can't be pickled.
class Pickler {
 public:
  Pickler();
  [[nodiscard]] ObjectRef operator()(PyObject* value) const;

 private:
  ObjectRef dumps_;
  ObjectRef protocol_;
};

// What the operator and the reader of one copy share.
class ObjectCopying {
 public:
  // told: values are changed also when no record of their key comes, and keep() is called before.
  ObjectCopying(std::mutex& turns, const Pickler& pickler, bool told) : turns_(turns), pickler_(pickler), told_(told) {}

  // --- GIL and the turn
  // The bytes of a value, at the first time that they are asked for or were kept; null: it can't be pickled, which the reader is told.
  [[nodiscard]] ObjectRef bytes_of(PyObject* value);
  void keep(PyObject* value);

  // --- the reader
  // It is in: has GIL and turn. Throws StateError when the interpreter is gone.
  void enter();
  void leave() noexcept;
  // Lets others have both, when it has had them for long enough. Throws StateError for what couldn't be pickled.
  void rest();
  void check() const;

 private:
  [[nodiscard]] ObjectRef pickled(PyObject* value);

  std::mutex& turns_;
  const Pickler& pickler_;
  const bool told_;
  std::string failure_;                             // of the first value that couldn't be pickled
  std::unordered_map<PyObject*, ObjectRef> taken_;  // if told; null: it was written
  std::unique_lock<std::mutex> lock_;
  std::optional<GilScope> gil_;
  std::chrono::steady_clock::time_point until_;
};

class ObjectCopy final : public StateCopy {
 public:
  ObjectCopy(std::shared_ptr<StateCopy> keys, std::shared_ptr<ObjectCopying> copying)
      : keys_(std::move(keys)), copying_(std::move(copying)) {}

  [[nodiscard]] std::uint64_t number() const noexcept override { return keys_->number(); }
  [[nodiscard]] std::vector<std::uint64_t> changed_after() const override { return keys_->changed_after(); }
  void skip(std::size_t segment) override { keys_->skip(segment); }
  [[nodiscard]] std::optional<StateChunk> next_chunk(std::size_t max_bytes) override;
  void abandon() noexcept override;

 private:
  std::shared_ptr<StateCopy> keys_;
  std::shared_ptr<ObjectCopying> copying_;
};

// Gives the GIL up for a scope, if this thread has it.
class WithoutGil {
 public:
  WithoutGil() noexcept : had_(Py_IsInitialized() != 0 && PyGILState_Check() != 0) {
    if (had_) leave_python();
  }
  ~WithoutGil() {
    if (had_) enter_python();
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  bool had_;
};

}  // namespace rayelastic::python
