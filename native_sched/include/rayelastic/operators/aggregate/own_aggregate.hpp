// A user's own aggregate, compiled: functions that take records in, merge what was taken in, and give a result, over a state record of fixed
// layout. Windows and tables by key keep its states as they keep those of the built-in aggregates. Knows neither queues nor Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operator/tolerant.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/text_rooms.hpp"

namespace rayelastic {

// add: a REL_KEYED function of records of the input, which it keeps none of; null: states are only read. merge: the same of state records,
// null if there is none. result: a REL_ONE_TO_ONE function of state records; null: a result has fields of the state, by name.
struct OwnMethods {
  rel_process add = nullptr;
  rel_process merge = nullptr;
  rel_process result = nullptr;
};

using ExplainBoth = std::function<std::string(const std::byte* record, const std::byte* state)>;

struct OwnOptions {
  OwnMethods methods = {};
  std::shared_ptr<const Schema> input = {};
  std::shared_ptr<const Schema> state = {};
  std::shared_ptr<const Schema> result = {};
  std::vector<std::byte> initial = {};  // the state of nothing, with which merging changes nothing; texts of at most 12 bytes
  ExplainBoth why_add = {};             // add failed on a record of the input, and a state, which it may have changed
  Explain why_state = {};               // result, or merge, on one of the state
  std::shared_ptr<void> owner = {};     // keeps the methods where they are
};

// One for each operator; never two threads at once.
class OwnAggregate final : private rel_context {
 public:
  // Throws std::invalid_argument.
  explicit OwnAggregate(OwnOptions options);

  // Where the texts of states are kept; to be called before anything below.
  void keep_in(TextRooms& rooms) noexcept { rooms_ = &rooms; }
  // Throws std::invalid_argument unless these fields can hold a result.
  void check_output(std::span<const Field> fields) const;

  [[nodiscard]] bool adds() const noexcept { return options_.methods.add != nullptr; }
  [[nodiscard]] bool merges() const noexcept { return options_.methods.merge != nullptr; }
  [[nodiscard]] std::span<const std::byte> initial() const noexcept { return options_.initial; }
  [[nodiscard]] std::span<const std::size_t> text_offsets() const noexcept { return text_offsets_; }
  [[nodiscard]] std::span<const TextCheck> text_checks() const noexcept { return text_checks_; }
  // Of what the states are made of: equal ones can be read by one another.
  [[nodiscard]] std::uint64_t layout() const noexcept;

  // Record i into states[i]; the index of a record that it failed on, or -1.
  [[nodiscard]] std::ptrdiff_t add(const std::byte* records, std::size_t count, void* const* states);
  // Adds the state of later records. False: it failed.
  [[nodiscard]] bool merge(std::byte* into, const std::byte* later);
  // Writes the result of a state to the last fields of a record of `output`. Its texts point into the state, or live until settle(). False: it
  // failed.
  [[nodiscard]] bool write(const std::byte* state, const Schema& output, std::span<const Field> fields, std::byte* record);
  // Lets go of what the texts of results were in.
  void settle() noexcept { texts_.clear(); }
  // Why something failed; empty as long as nothing has.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  // --- what the methods ask for
  bool flush(std::int64_t) override { return false; }
  void finish() override {}
  void* allocate(std::size_t bytes) override;
  void attach(Chunk*) override {}
  bool keep_text(void* field, const char* text, std::uint32_t bytes) override;
  void fail(std::string message) override { problem_ = std::move(message); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark) override {}
  [[nodiscard]] bool stopping() const override { return false; }

  // False, unless the problem is told already.
  bool failed(std::string_view method, const Explain& why, const std::byte* record);

  OwnOptions options_;
  std::vector<const Field*> shown_ = {};  // of the state, for each field of a result, if no method makes it
  std::vector<std::size_t> text_offsets_ = {};
  std::vector<TextCheck> text_checks_ = {};
  std::vector<std::uint64_t> made_ = {};  // room for a result
  std::vector<std::unique_ptr<char[]>> texts_ = {};
  TextRooms* rooms_ = nullptr;
  std::string problem_ = {};
};

}  // namespace rayelastic
