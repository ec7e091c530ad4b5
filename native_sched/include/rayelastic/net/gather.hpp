// Where a stream comes in by any number of links, more and fewer while it runs: a source that passes on what arrives at each, and notes
// the Flush marks (router.hpp). And the tap, behind each replica of a region: an operator that passes everything on and notes them too.
//
// A thread per link receives (P08) and hands each frame to the one that runs the source; credit is given back when that has passed it on.
// In turn, a gather brings together what the replicas of a region without state give, in the order in which its router has dealt it out: an arm
// waits with its frame until the turn is due that the frame belongs to. The replica in the same PE is an arm of it, too, once there are
// turns: its tap hands over what comes; before the first turn the tap passes everything on itself.
// In any order, nobody waits for a turn, and the turns' marks end here.
// It can't stand still: of the turns that aren't through, the lowest one is all in its replica, and nobody else is waited for meanwhile.
//
// The mark of an epoch is passed on when it has come by all arms, and from the taps in this PE, which hand it over though they pass it on
// themselves as well; an arm that has had it waits. (Where the output of gather and tap meets, the engine does the same.)
//
// A gather ends when all links that it knows and all local ends (replicas in the same PE) have ended, and there is at least one, or none will
// come (seal). A link that comes after that is refused: its sender learns it by the loss of the link. Replicas come and go as long as a job
// runs: the source lets go of a link that has ended, and of its thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/mutex.hpp"
#include "rayelastic/net/gather/arms.hpp"
#include "rayelastic/net/gather/local_pieces.hpp"
#include "rayelastic/net/gather/passed_watermark.hpp"
#include "rayelastic/net/gather/turn_order.hpp"
#include "rayelastic/net/link.hpp"
#include "rayelastic/net/mark_log.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

struct GatherOptions {
  std::string name;
  std::size_t local_ends = 0;  // taps that will say end_local()
  bool tolerant = false;       // a link that is lost ends like one that said goodbye; else the source fails
  bool in_turn = false;
  bool any_order = false;     // in turn, but what a replica emits is passed on as it comes
  std::int64_t end_mark = 0;  // is sent behind the last record; 0: none
};

class Gather {
 public:
  Gather(std::shared_ptr<const Schema> schema, GatherOptions options);
  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  // --- any thread. False: too late.
  [[nodiscard]] bool add(std::shared_ptr<Link> link);
  void end_local();
  // No link comes that isn't there: those that would send have ended. Safe to repeat.
  void seal();
  // In turn, of the local replica. False: stop.
  [[nodiscard]] bool put(const Run& run);
  [[nodiscard]] bool put(Mark mark);
  // Marks of epochs up to that one mean nothing any more.
  void abandon_epochs(std::int64_t epoch);
  // In turn: what the local replica has handed over, and what of it has been passed on. Any thread.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> flow() const;
  [[nodiscard]] bool speaks() const noexcept { return watermark_.is_published(); }  // a watermark has been passed on
  [[nodiscard]] std::vector<std::string> lost() const;                              // failures of links, tolerated or not
  void interrupt() noexcept;
  [[nodiscard]] MarkLog& marks() noexcept { return marks_; }

  [[nodiscard]] std::int64_t process(std::byte* out, std::size_t capacity, rel_context* context);

  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] const std::shared_ptr<const Schema>& schema() const noexcept { return schema_; }

 private:
  void receive(Arm& arm);
  [[nodiscard]] bool is_due(const Arm& arm, bool records, Mark mark) const noexcept REL_HELD(mutex_);
  [[nodiscard]] bool is_due(const Arm& arm) const noexcept REL_HELD(mutex_);
  [[nodiscard]] bool is_due_locally() const noexcept REL_HELD(mutex_);
  [[nodiscard]] bool is_aligned(std::int64_t epoch) const noexcept REL_HELD(mutex_);
  [[nodiscard]] std::int64_t pass_local(LocalPieces::Piece piece, rel_context* context);
  [[nodiscard]] std::int64_t pass(Arm& arm, std::byte* out, std::size_t capacity, rel_context* context);
  void pass(Arm& arm, Mark mark, rel_context* context);

  const std::shared_ptr<const Schema> schema_;
  const GatherOptions options_;
  MarkLog marks_;
  PassedWatermark watermark_;

  mutable Mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable taken_;
  Arms arms_ REL_GUARDED_BY(mutex_);
  Arm local_;  // of what the taps put; the source's thread's
  LocalPieces pieces_ REL_GUARDED_BY(mutex_);
  TurnOrder turns_ REL_GUARDED_BY(mutex_);
  std::size_t local_ended_ REL_GUARDED_BY(mutex_) = 0;
  std::int64_t epoch_ REL_GUARDED_BY(mutex_) = 0;  // the last one that was passed on, or given up
  std::vector<std::string> lost_ REL_GUARDED_BY(mutex_);
  bool sealed_ REL_GUARDED_BY(mutex_) = false;
  bool ended_ REL_GUARDED_BY(mutex_) = false;
  bool stopping_ REL_GUARDED_BY(mutex_) = false;
};

// What notes the marks behind a replica. `gathers` hear of its end.
struct Tap {
  MarkLog marks;
  std::vector<std::shared_ptr<Gather>> gathers;
  std::shared_ptr<Gather> in_turn = {};  // takes what comes from the first turn on
  bool turning = false;                  // whoever runs the tap
  Bypass bypass = {};                    // open until then
  bool silent = false;                   // has said that it waits for nothing
  std::optional<Mark> watermark = {};    // the last one
};

[[nodiscard]] std::shared_ptr<Operator> make_gather(std::shared_ptr<Gather> gather);
[[nodiscard]] std::shared_ptr<Operator> make_tap(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<Tap> tap);

}  // namespace rayelastic
