#include "mutants.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace rayelastic::model {

namespace {

using Structures = std::vector<const char*>;

// The index-th site of `function` of that kind, in the order of the source.
Site& site_of(const std::string& function, Kind kind, std::size_t index = 0) {
  for (Site* site : Site::all()) {
    if (site->function == function && site->kind == kind && index-- == 0) return *site;
  }
  std::fprintf(stderr, "model: a mutant is meant for %s in %s, which isn't there\n", name(kind), function.c_str());
  std::exit(2);
}

Mutant weakened(const char* name, Structures structures, const char* function, Kind kind, std::size_t index, std::memory_order order) {
  Site& site = site_of(function, kind, index);
  return {name, std::move(structures), [&site, order] { site.in_force = order; }};
}

Mutant faulty(const char* name, Structures structures, Fault planted) {
  return {name, std::move(structures), [planted] { fault = planted; }};
}

// Orders that are stronger than any scenario needs.
struct Needless {
  const char* function;
  Kind kind;
  std::memory_order order;
  const char* change;  // as in the mutant's name
  int index;           // among the function's sites of that kind; -1: all
  const char* why;
};
constexpr const char* kConsumers = "the lock of the consumer side orders consumers";
constexpr const char* kBuffer = "no store waits in a buffer here: the mutant by hand that puts it off stands for that";
constexpr Needless kNeedless[] = {
    {"BasicPort::wait_listed", Kind::Exchange, std::memory_order_acq_rel, "acquire", -1, "nobody acquires an emptied mailbox"},
    {"BasicPort::open_way", Kind::Store, std::memory_order_seq_cst, "dropped", -1, "who finds the way shut asks the port"},
    {"BasicPort::open_way", Kind::Store, std::memory_order_seq_cst, "release", -1, kBuffer},
    {"BasicPort::shut_way", Kind::Store, std::memory_order_seq_cst, "release", -1, kBuffer},
    {"PortQueue::size", Kind::Load, std::memory_order_acquire, "relaxed", -1, "nobody relies on how many records are inside"},
    {"PortQueue::forget_awaited", Kind::Compare, std::memory_order_relaxed, "dropped", -1, "who hears of it twice finds nobody waiting"},
    {"PortQueue::set", Kind::Compare, std::memory_order_acq_rel, "release", -1, kConsumers},
    {"PortQueue::retire", Kind::Exchange, std::memory_order_acq_rel, "acquire", -1, kConsumers},
    {"PortQueue::empty", Kind::Load, std::memory_order_acquire, "relaxed", -1, "front() acquires before anything is read"},
    {"Notifier::wait", Kind::Compare, std::memory_order_acquire, "relaxed", -1, "the load before it has acquired a permit"},
    {"Notifier::take_waiter", Kind::Compare, std::memory_order_seq_cst, "failure acquire", -1,
     "a waiter that comes after the notifier's first look sees the work itself"},
    {"Notifier::take_waiter", Kind::Compare, std::memory_order_seq_cst, "acq_rel", -1,
     "who misses a decrement fails at its own; only the increment and the looks need the one order"},
};

std::string needless(const Site& site, const std::string& change) {
  for (const Needless& known : kNeedless) {
    if (site.function == known.function && site.kind == known.kind && site.order == known.order && change == known.change &&
        (known.index < 0 || &site == &site_of(known.function, known.kind, static_cast<std::size_t>(known.index))))
      return known.why;
  }
  return {};
}

Structures structures_of(const Site& site) {
  if (site.file == "port_queue.hpp") return {"PortQueue", "Port"};
  if (site.file == "flag_lock.hpp") return {"FlagLock", "Port"};
  if (site.file == "free_ports.hpp") return {"FreePorts", "Notifier", "Port"};
  if (site.file == "notifier.hpp") return {"Notifier", "Port"};
  if (site.file == "basic_port.hpp" || site.file == "port_producer.hpp" || site.file == "port_visit.hpp") return {"Port"};
  if (site.file == "hold.hpp") return {"Hold"};
  if (site.file == "copy_marks.hpp") return {"Copy"};
  return {};
}

}  // namespace

void heal() {
  Site::restore_all();
  fault = Fault::None;
}

std::vector<Mutant> mutants_by_hand() {
  using enum Kind;
  return {
      faulty("E1: push returns without unlocking the producer lock", {"Port"}, Fault::PushKeepsProducerLock),
      faulty("a visit doesn't unlock the consumer lock", {"Port"}, Fault::VisitKeepsConsumerLock),
      faulty("switch to manual without drain", {"Port"}, Fault::SwitchWithoutDrain),
      faulty("retire without a second look", {"PortQueue", "Port"}, Fault::RetireWithoutSecondLook),
      faulty("who waits for an empty queue isn't told", {"Port"}, Fault::AwaitedForgotten),
      faulty("a port waits for a queue that nobody will look into", {"Port"}, Fault::AwaitsNobody),
      faulty("nobody is told of a push after a retirement", {"PortQueue", "Port"}, Fault::NoAnnounce),
      faulty("a worker sleeps without a second look", {"Notifier"}, Fault::WaiterWithoutSecondLook),
      faulty("a suspended worker keeps a notification to itself", {"Port"}, Fault::SuspendedKeepsNotification),
      faulty("unlock forgets the notes", {"Port"}, Fault::NoteForgotten),
      faulty("a producer runs the operator in part past a mark", {"Port"}, Fault::PartialPastMark),
      {"records are published before their chunk", {"PortQueue"}, [&site = site_of("PortQueue::put_note", Store)] { site.put_off = true; }},
      faulty("who enters an operator passes no fence", {"Hold"}, Fault::EntersWithoutFence),
      faulty("who holds an operator passes no fence", {"Hold"}, Fault::HoldsWithoutFence),
      {"the way is open only after the desired model is read",
       {"Port"},
       [&site = site_of("BasicPort::open_way", Store)] { site.put_off = true; }},
      weakened("written_ published relaxed", {"PortQueue"}, "PortQueue::push", Store, 0, std::memory_order_relaxed),
      weakened("read_ seen relaxed", {"PortQueue"}, "PortQueue::push", Load, 1, std::memory_order_relaxed),
      weakened("notes published relaxed", {"PortQueue"}, "PortQueue::put_note", Store, 0, std::memory_order_relaxed),
      weakened("FlagLock unlocks relaxed", {"FlagLock"}, "FlagLock::unlock", Compare, 0, std::memory_order_relaxed),
      weakened("FlagLock locks relaxed", {"FlagLock"}, "FlagLock::try_lock", Compare, 0, std::memory_order_relaxed),
      weakened("a filled cell is published relaxed", {"FreePorts"}, "FreePorts::push", Store, 0, std::memory_order_relaxed),
      weakened("an emptied cell is published relaxed", {"FreePorts"}, "FreePorts::pop", Store, 0, std::memory_order_relaxed),
      weakened("the free list's tail moves acq_rel", {"Notifier"}, "FreePorts::push", Compare, 0, std::memory_order_acq_rel),
      weakened("a waiter announces itself acq_rel", {"Notifier"}, "Notifier::prepare", Add, 0, std::memory_order_acq_rel),
      weakened("a waiter announces itself relaxed", {"Notifier"}, "Notifier::prepare", Add, 0, std::memory_order_relaxed),
  };
}

std::vector<Mutant> mutants_by_rule() {
  std::vector<Mutant> all;
  for (Site* site : Site::all()) {
    const Structures structures = structures_of(*site);
    if (structures.empty()) continue;
    const std::string place = site->text();
    const auto add = [&](const std::string& change, std::function<void()> plant) {
      all.push_back({place + " -> " + change, structures, std::move(plant), needless(*site, change)});
    };
    if (site->kind != Kind::Notify) {
      for (const auto order : weaker(site->kind, site->order)) add(name(order), [site, order] { site->in_force = order; });
    }
    if (site->kind == Kind::Compare) {
      for (const auto order : weaker(Kind::Load, site->failure))
        add(std::string("failure ") + name(order), [site, order] { site->failure_in_force = order; });
    }
    if (site->kind != Kind::Load && site->kind != Kind::Wait) add("dropped", [site] { site->dropped_for = Site::kEverywhere; });
  }
  return all;
}

}  // namespace rayelastic::model
