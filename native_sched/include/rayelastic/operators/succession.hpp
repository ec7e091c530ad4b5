// Two sources as one: all records of the first, then those of the second, such as history in files, and the topic that continues it.
//
// Owners: the source operator, in one thread, runs one of the two at a time. Any other thread may wait for the second's turn and ask where it
// began.
// Positions: until seam() is known, the operator's records are those of the first. From then on the first seam() records of this run are, and
// all others the second's. All marks that end the first are sent before, so what is saved there belongs to the second's turn.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rayelastic/mutex.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class Succession {
 public:
  // Before the start: it begins with the second. Or the first emits `skipped` records again, which are dropped behind it.
  void begin(bool with_second, std::int64_t skipped);
  // How many records of this run are the first's, dropped ones included; none: it hasn't ended.
  [[nodiscard]] std::optional<std::int64_t> seam() const;
  // Waits for the second's turn. False: it was interrupted.
  [[nodiscard]] bool wait();
  void interrupt();  // nobody waits here any more

  // For the source.
  [[nodiscard]] std::int64_t skipped() const;
  void turn(std::int64_t records);
  [[nodiscard]] bool is_interrupted() const;

 private:
  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::int64_t> seam_ REL_GUARDED_BY(mutex_);
  std::int64_t skipped_ REL_GUARDED_BY(mutex_) = 0;
  bool interrupted_ REL_GUARDED_BY(mutex_) = false;
};

// tells_first, tells_second: whether splits of that source are announced; see make_union. Throws std::invalid_argument: one isn't a source,
// needs Python, or has another schema.
[[nodiscard]] std::shared_ptr<Operator> make_succession(std::string name, std::shared_ptr<Operator> first, std::shared_ptr<Operator> second,
                                                        bool tells_first, bool tells_second, std::shared_ptr<Succession> succession);

}  // namespace rayelastic
