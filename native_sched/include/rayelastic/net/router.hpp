// Where streams part and meet again, when a region runs as several replicas (Joker section 3.2, 3.3; J12, J16): a router in front of the
// region, a gather wherever a link from another PE comes in, a tap behind each replica. Knows hash ranges and links; neither
// regions, nor plans, nor who decides.
//
// How the keys of some partitions go from replica A to replica B while everything runs:
//   1. Every router in front of the region holds them: their records wait in the router, all others go on. Behind the last record that went
//      to A it sends a Flush mark.
//   2. The mark passes A's operators like a record. When the tap behind A has seen it from every router, no record of the keys is
//      in A; when those who take A's output have seen it, none of it is under way. A's state of the keys is copied to B.
//   3. Every router routes the partitions to B: what waited goes first. A forgets the keys.
// So a key has one owner at a time, its records are neither lost nor doubled, and their order is kept, also of what comes out (J11).
//
// Invariants
//   All that decides where a record goes is touched by whoever runs the router alone. Commands are posted under mutex_ and carried out, in order,
//     by whoever runs it: at the next run, at a Command mark (Scheduler::poke), or while it waits.
//   While a router holds some records back it lets in no more than came before, for what it lets in piles up in front of their new owner: a
//     source that nobody holds back would make the work of minutes meanwhile. So a run waits there, but for kLongestWait at most.
//   A router waits when it holds back more than hold_bytes, and at the end of its input while anything is held: then only a command
//     or a stop gets it on. Its input's end is passed on after that, and commands are answered by Ended, once all that it has sent has come
//     to the other PEs. What it sent here is processed when the tap has its end mark (mark_log.hpp), as that of each gather whose links have ended.
//   A router that deals in turns (a region without state, where any replica may have any record) looks at no key: parts of runs go to the
//     replicas in turn, each to one that has room, as much as goes at once, between two Turn marks of its own; so what comes behind it is put in order again
//     (gather.hpp). The first turn is an empty one of the replica that had everything before: it stands behind all of that.
//   A router that sends everywhere looks at no key either: each record goes to every target that owns a partition, or has owned one since it was
//     attached. While any partition is held all its records wait: so what a replica was sent is told by its place between the marks, and one
//     that gets its first keys gets, with their state, what the others know, and from then on what they get.
//   A router that goes by keys looks at some of its records to tell which key has the most (hot_keys.hpp); nothing is decided by it here.
//   Commands of an older epoch than one that was carried out are refused: they come from a coordinator that was replaced.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rayelastic/mutex.hpp"
#include "rayelastic/net/hot_keys.hpp"
#include "rayelastic/net/link.hpp"
#include "rayelastic/net/router/command_queue.hpp"
#include "rayelastic/net/router/held_records.hpp"
#include "rayelastic/net/router/held_watermark.hpp"
#include "rayelastic/net/router/partition_owners.hpp"
#include "rayelastic/net/router/routed_keys.hpp"
#include "rayelastic/net/router/router_links.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

struct RouterOptions {
  std::string name;
  std::vector<std::string> keys;       // key fields; none: everything is one key
  std::vector<std::uint16_t> owners;   // target of each partition: a partition is a range of hashes (plan/hash_ring.py)
  std::vector<std::uint16_t> locals;   // targets that are reached by the output ports 0, 1, ...; others by links
  std::size_t hold_bytes = 64U << 20;  // of records that wait for their keys; beyond it everything waits
  bool in_turn = false;                // deal in turns, whatever the keys
  bool everywhere = false;             // each record to all targets, whatever the keys
  std::int64_t end_mark = 0;           // goes to the local targets behind the last record; 0: none
};

struct RouterCounters {
  std::uint64_t epoch = 0;         // of the last command
  std::uint64_t held_records = 0;  // now
  std::uint64_t held_bytes = 0;
  std::uint64_t ever_held = 0;             // records
  std::uint64_t waits = 0;                 // times that hold_bytes was reached
  bool ended = false;                      // the input is at its end
  bool closed = false;                     // it carries no command out any more
  std::vector<std::uint16_t> broken = {};  // targets whose link failed: their keys are held
  std::vector<std::uint16_t> owners = {};  // as in RouterOptions, kHeld for what is held
};

class Router {
 public:
  static constexpr std::uint16_t kHeld = PartitionOwners::kHeld;

  using Answer = RouterAnswer;

  // Throws std::invalid_argument, naming the router.
  Router(std::shared_ptr<const Schema> schema, RouterOptions options);
  ~Router();

  // --- any thread. Each returns a ticket for wait(). A held partition may be held again, and a partition routed to where it is.
  // hold: the mark goes to `owner` alone, the target that has had them: a mark by another way would come too early.
  std::uint64_t hold(std::vector<std::uint16_t> partitions, std::uint16_t owner, std::int64_t mark, std::uint64_t epoch);
  std::uint64_t route(std::vector<std::uint16_t> partitions, std::uint16_t target, std::uint64_t epoch);
  // Another target, or one whose link broke. No partition goes there before route() says so.
  std::uint64_t attach(std::uint16_t target, std::shared_ptr<Link> link, std::uint64_t epoch);
  // The target's link says goodbye; refused as long as anything is routed there.
  std::uint64_t detach(std::uint16_t target, std::uint64_t epoch);
  [[nodiscard]] Answer wait(std::uint64_t ticket, std::chrono::nanoseconds patience);
  [[nodiscard]] RouterCounters counters() const;
  [[nodiscard]] std::optional<HotKey> hottest() const;  // as it was not long ago; none where records don't go by keys
  void interrupt() noexcept;

  // --- whoever runs it
  [[nodiscard]] std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, rel_context* context);
  [[nodiscard]] bool marked(Mark mark, rel_context* context);

  [[nodiscard]] const std::string& name() const noexcept { return options_.name; }
  [[nodiscard]] const std::shared_ptr<const Schema>& schema() const noexcept { return schema_; }
  [[nodiscard]] Bypass& bypass() noexcept { return bypass_; }
  [[nodiscard]] std::size_t local_count() const noexcept { return options_.locals.size(); }

 private:
  using Command = RouterCommand;
  struct Target {
    bool known = false;
    std::int32_t port = -1;  // of the operator; -1: link
    std::shared_ptr<Link> link;
    bool broken = false;
    bool fed = false;             // it owns a partition, or has owned one
    std::vector<std::byte> part;  // of the run that is being scattered
    std::size_t records = 0;
    std::size_t in_turn = 16;  // records of a turn: more as long as that takes no time, fewer where others would wait
  };

  std::uint64_t post(Command command);
  [[nodiscard]] bool carry_out(rel_context* context);
  [[nodiscard]] bool wait_for_command(rel_context* context);
  [[nodiscard]] bool wait_for_command(rel_context* context, std::chrono::milliseconds most);
  [[nodiscard]] bool keep_pace(rel_context* context);
  [[nodiscard]] Answer carry_out(Command& command, rel_context* context);
  [[nodiscard]] Answer begin_hold(const Command& command, rel_context* context);
  [[nodiscard]] Answer change_route(const Command& command, rel_context* context);
  [[nodiscard]] bool release(rel_context* context);
  void look_at_keys(const Run& run);
  [[nodiscard]] bool scatter(const Run& run, rel_context* context);
  [[nodiscard]] bool send(Target& target, std::uint16_t number, rel_context* context);
  [[nodiscard]] bool deal(const Run& run, rel_context* context);
  [[nodiscard]] bool send_everywhere(const Run& run, rel_context* context);
  [[nodiscard]] bool feeds_several() const noexcept;
  [[nodiscard]] bool passes_on() const noexcept;
  void open_bypass() noexcept;
  void deal(Mark mark, rel_context* context);
  [[nodiscard]] bool send_turn(std::uint16_t number, const Run& run, rel_context* context);
  [[nodiscard]] bool send_all(std::uint16_t number, const Run& run, rel_context* context);
  [[nodiscard]] std::uint16_t next_in_turn();
  void break_target(std::uint16_t number);
  [[nodiscard]] bool finish(rel_context* context);
  [[nodiscard]] bool say_goodbyes();
  [[nodiscard]] Answer add_target(const Command& command);
  [[nodiscard]] Answer drop_target(const Command& command);
  [[nodiscard]] bool send_to_links(Mark mark);
  [[nodiscard]] bool send_one_way(Mark mark);
  void hold_partitions(const std::vector<std::uint16_t>& partitions);
  void hold_back(const Run& run);
  [[nodiscard]] bool goes_by_keys() const noexcept { return !options_.in_turn && !options_.everywhere; }
  void publish();

  const std::shared_ptr<const Schema> schema_;
  PartitionOwners owners_;
  const RouterOptions options_;  // without the owners
  RoutedKeys keys_;
  std::vector<Target> targets_;
  Target waiting_;  // what scatter() found to be held
  HeldRecords held_;
  HeldWatermark watermark_;
  std::size_t turn_ = 0;    // which target gets the next Time mark
  std::int64_t turns_ = 0;  // that were dealt
  Bypass bypass_;           // open while everything goes one way here, and no keys are looked at
  std::uint64_t epoch_ = 0;
  std::uint64_t waits_ = 0;
  bool ended_ = false;
  bool closing_ = false;  // under mutex_, too: no command will be carried out

  std::atomic<bool> posted_{false};  // relaxed: under mutex_ the truth is found out
  std::atomic<bool> stopping_{false};
  mutable Mutex mutex_;
  std::condition_variable changed_;
  CommandQueue commands_ REL_GUARDED_BY(mutex_);
  RouterLinks links_ REL_GUARDED_BY(mutex_);
  RouterCounters counters_ REL_GUARDED_BY(mutex_);
  std::optional<HotKey> hottest_ REL_GUARDED_BY(mutex_);
};

// An operator that runs it: one output port for each local target, a sink if there is none.
[[nodiscard]] std::shared_ptr<Operator> make_router(std::shared_ptr<Router> router);

}  // namespace rayelastic
