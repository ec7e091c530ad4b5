// What becomes of a record that compiled code refuses although Python has an answer for it: a number beyond 64 bits on the way, for
// example. Python's answer goes out in the record's place, and the function goes on behind it. Knows no Python: it asks for answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// Gives the output of single records, one after the other. Called while nothing else of the operator runs.
class Answers {
 public:
  virtual ~Answers() = default;
  // False: there is none for this record, or it doesn't fit the output.
  [[nodiscard]] virtual bool ask(const std::byte* record) = 0;
  // Submits the last answer without its first `skipped` records. False: stop.
  [[nodiscard]] virtual bool submit(rel_context* context, std::int64_t skipped) = 0;
};

class Recovery {
 public:
  // A call of an operator that failed on record `failed` of its input, and what came out of it until then.
  struct Call {
    const std::byte* in;
    std::int64_t n;
    std::byte* out;
    std::int64_t capacity;
    std::int64_t failed;
    std::int64_t flushed;  // records that went out
    std::int64_t kept;     // of a FILTER: records of those before that are in `out` (rel_kept)
  };

  explicit Recovery(std::shared_ptr<Answers> answers) : answers_(std::move(answers)) {}

  [[nodiscard]] Answers& answers() const noexcept { return *answers_; }
  // Ends the call; what a rel_process returns, REL_FAILED if there is no answer for a record. Whatever comes of it, the output of the
  // records before goes out. `out` may be `in`.
  [[nodiscard]] std::int64_t go_on(Operator& op, Call call, rel_context* context) const;

 private:
  const std::shared_ptr<Answers> answers_;
  mutable std::mutex mutex_;  // held throughout go_on: a reentrant function may fail in several threads
};

// The same operator with a recovery. `inner`: a function of one input and one output port, without keyed state; the same for the same input,
// because it may be called twice. Throws std::invalid_argument for another.
[[nodiscard]] std::shared_ptr<Operator> make_recovering(const Operator& inner, std::shared_ptr<Answers> answers);

}  // namespace rayelastic
