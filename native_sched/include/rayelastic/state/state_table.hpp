// What an operator keeps by key, as those see it who count, move and save it (Joker J05, J16): flat bytes by hash range, whatever
// there is inside. Knows no operator and no file.
//
// Chunks: each one is an export of its own, which says of which format and layout it is, and can be imported alone. So an export of
// any size needs the memory of one chunk, can be interrupted between two, and go on at another's pace. Keys are forgotten in chunks, too: the
// operator is never held for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/state/key_selection.hpp"
#include "rayelastic/state/state_copy.hpp"

namespace rayelastic {

// Bytes that can't be imported, or keys that are here already.
class StateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class StateRows;  // state_rows.hpp

class StateTable {
 public:
  StateTable() = default;
  virtual ~StateTable() = default;
  StateTable(const StateTable&) = delete;
  StateTable& operator=(const StateTable&) = delete;

  // --- any thread
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;   // keys
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;  // memory in use
  // Of what is in the bytes: tables with the same layout can import from one another.
  [[nodiscard]] virtual std::uint64_t layout() const noexcept = 0;

  // Whether keys of which no record comes stay as they are, whatever comes of others: then a selection of such may be exported while the
  // operator runs.
  [[nodiscard]] virtual bool exports_aside() const noexcept { return false; }

  // Whether exports hold objects of another language, which are only ever to be imported from who is trusted.
  [[nodiscard]] virtual bool holds_objects() const noexcept { return false; }

  // --- the operator
  // Records that it may take at once now: a copy that is being read makes keys dear that it comes to first.
  [[nodiscard]] virtual std::size_t longest_run() const noexcept { return kUnbounded; }

  // --- while the operator isn't running: it is held, or over, or hasn't started

  // Adds keys of the selection's hashes that are among the next max_places, from place `at` on (0 at first). Sets `at` to where to go on, 0
  // when there is no more. The operator may run in between. What is selected holds as long as nobody adds such keys; those that are gone are
  // left out.
  virtual void select_chunk(KeySelection& keys, std::uint64_t& at, std::size_t max_places) const = 0;
  // Some of them, from place `at` on: about max_bytes, one at least; likewise.
  [[nodiscard]] virtual std::vector<std::byte> export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) = 0;
  // All or nothing; the number of keys. Throws StateError for bytes that aren't an export of a table like this, and for keys that are here
  // already.
  virtual std::size_t import_range(std::span<const std::byte> bytes) = 0;
  // Forgets max_keys of them at most, likewise; returns how many.
  virtual std::size_t remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) = 0;
  // All keys as they are now, for another thread to read while the operator goes on; the last copy is given up. Null: what it keeps can only be
  // read while the operator isn't running.
  [[nodiscard]] virtual std::shared_ptr<StateCopy> begin_copy() { return nullptr; }
  // Writes everything as rows of the fields that its kind of state has. Throws StateError where that is no rows.
  virtual void write_rows(StateRows& rows);
  // Makes room for so many keys more: their import won't have to.
  virtual void reserve_more(std::size_t keys) = 0;

  // At once.
  [[nodiscard]] KeySelection select(HashRanges of) const {
    KeySelection keys{.of = std::move(of)};
    std::uint64_t at = 0;
    select_chunk(keys, at, kUnbounded);
    return keys;
  }
  [[nodiscard]] std::vector<std::byte> export_range(std::uint64_t low, std::uint64_t high) {
    std::uint64_t at = 0;
    return export_chunk(select({low, high}), at, kUnbounded);
  }
  std::size_t remove_range(std::uint64_t low, std::uint64_t high) {
    std::uint64_t at = 0;
    return remove_chunk(select({low, high}), at, kUnbounded);
  }

 protected:
  static constexpr std::size_t kUnbounded = std::numeric_limits<std::size_t>::max();
};

}  // namespace rayelastic
