// Keyed state of operators that run in Python: the state record of a key is one pointer to a Python object, made by the user's
// factory when the key comes first, owned by the table.
//
// An export is a header (magic "RELPICK1", layout of the keys, number of keys, bytes that follow; 8 bytes each), then for each key its
// length (4), 1 if it is null (1), its bytes, with a time to live the last touch (8), the length of the pickled value (4), the pickled value.
// A copy (object_copy.hpp) is pickled beside the operator. What a key has is its own: of an object that two keys share each has in a copy what
// that was when its own turn came.
// Import unpickles: bytes are only ever taken from Ray's own authenticated channel or with a signature that was checked, never from a port.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "rayelastic/state/keyed_state.hpp"
#include "state/object_copy.hpp"

namespace rayelastic::python {

class ObjectStates final : public StateTable {
 public:
  // GIL. A table for keys of `input` whose values `factory()` makes. told: they are changed also when no record of their key comes, and
  // will_change() is called before. Without `unpickles`, an imported value is the bytes that it was pickled to.
  ObjectStates(std::shared_ptr<const Schema> input, const std::vector<std::string>& keys, PyObject* factory, const TimeToLive& ttl = {},
               bool told = false, bool unpickles = true);
  ~ObjectStates() override;  // takes the GIL itself

  [[nodiscard]] KeyedState& table() noexcept { return table_; }

  // GIL. Nobody reads a copy meanwhile: for begin_run and the lookups behind it.
  [[nodiscard]] Turn turn() { return Turn(turns_); }

  // GIL, and the turn. KeyedState::begin_run; lets go of the values of keys that were forgotten.
  void begin_run(std::int64_t watermark, std::size_t records);

  // GIL. New reference to the list of the values in `slots`, those that are new made now. Null with a Python error and `*failed` set
  // to the index of the slot whose factory raised.
  [[nodiscard]] PyObject* values(void* const* slots, std::size_t count, std::size_t* failed);

  // GIL. A new list of all values that there are.
  [[nodiscard]] PyObject* all_values();
  // How often keys have come or gone otherwise than by a run's lookups.
  [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
  // GIL; the operator. A value will be, of which no record has come in this run.
  void will_change(PyObject* value);
  // GIL; the operator, if told: it needs these values no more. Their keys are freed; what isn't in the table is passed over.
  void forget(std::span<PyObject* const> values);

  // StateTable. Those that touch values take the GIL themselves. A value that can't be pickled is a StateError, too.
  [[nodiscard]] std::size_t size() const noexcept override { return table_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept override { return table_.bytes(); }  // without what the values hold
  [[nodiscard]] std::uint64_t layout() const noexcept override;
  [[nodiscard]] bool holds_objects() const noexcept override { return true; }
  void select_chunk(KeySelection& keys, std::uint64_t& at, std::size_t max_places) const override {
    table_.select_chunk(keys, at, max_places);
  }
  [[nodiscard]] std::vector<std::byte> export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) override;
  std::size_t import_range(std::span<const std::byte> bytes) override;
  std::size_t remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) override;
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy() override;
  void reserve_more(std::size_t keys) override { table_.reserve_more(keys); }
  void write_rows(StateRows& rows) override { table_.write_rows(rows); }  // of the keys, in the order of all_values()
  [[nodiscard]] std::size_t longest_run() const noexcept override { return table_.is_copied() ? kCopiedRun : kUnbounded; }

 private:
  // A value comes into a slot, or leaves it.
  void put(void* slot, PyObject* value);
  [[nodiscard]] PyObject* take(void* slot);

  static constexpr std::size_t kCopiedRun = 32;  // records, whose values are pickled before any of them goes on: some 0.2 ms

  const Pickler pickler_;
  KeyedState table_;
  PyObject* factory_;
  const bool told_;
  const bool unpickles_;
  std::unordered_map<PyObject*, void*> slots_;  // if told: where each value is
  std::mutex turns_;
  std::shared_ptr<ObjectCopying> copying_;  // of the last copy; the operator's
  std::uint64_t changes_ = 0;               // guarded by the GIL
};

}  // namespace rayelastic::python
