// Keys move between two PEs while everything runs (Joker J12, J15, J16): nothing lost, nothing doubled, state right, order kept.
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "rayelastic/net/gather.hpp"
#include "rayelastic/net/router.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "text_rows.hpp"

using namespace rayelastic;
using namespace rayelastic::check;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kPartitions = 31;

// Rows of many keys (streams), each with its own sequence.
struct KeySource : Guarded {
  std::vector<std::int64_t> next;
  std::int64_t left = 0;
  std::atomic<bool> enough{false};
  std::uint64_t dice = 1;
};

TestOperator key_source(std::size_t keys, std::shared_ptr<KeySource> state) {
  state->next.resize(keys, 0);
  TestOperator spec{.name = "source", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(state), .outputs = {row_schema()}};
  spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<KeySource*>(static_cast<Guarded*>(opaque));
    auto* rows = static_cast<Row*>(out);
    if (self.enough) {
      rel_finish(context);
      return 0;
    }
    for (std::int64_t i = 0; i < capacity; ++i) {
      self.dice = self.dice * 6364136223846793005U + 1442695040888963407U;
      const auto key = static_cast<std::size_t>(self.dice >> 33) % self.next.size();
      rows[i] = {static_cast<std::int64_t>(key), self.next[key]++};
    }
    return capacity;
  };
  return spec;
}

// Counts rows by key; its state has to be what the sequence says.
struct Counts : Guarded {
  KeyedState table{row_schema(), std::vector<std::string>{"stream"}, sizeof(std::int64_t), std::vector<std::byte>(sizeof(std::int64_t))};
  std::mutex mutex;  // stands for the safe point
  std::atomic<std::int64_t> wrong{0};
};

TestOperator counts(std::shared_ptr<Counts> state) {
  TestOperator spec{.name = "counts",
                    .flags = REL_ONE_TO_ONE,
                    .state = std::shared_ptr<Guarded>(state),
                    .inputs = {row_schema()},
                    .outputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Counts*>(static_cast<Guarded*>(opaque));
    const std::lock_guard guard(self.mutex);
    const auto* rows = static_cast<const Row*>(in);
    std::vector<void*> slots(static_cast<std::size_t>(n));
    self.table.lookup(static_cast<const std::byte*>(in), static_cast<std::size_t>(n), slots.data());
    for (std::int64_t i = 0; i < n; ++i) {
      auto& count = *static_cast<std::int64_t*>(slots[static_cast<std::size_t>(i)]);
      if (rows[i].sequence != count++) ++self.wrong;
      static_cast<Row*>(out)[i] = rows[i];
    }
    return n;
  };
  return spec;
}

std::pair<std::shared_ptr<Link>, std::shared_ptr<Link>> link_pair(const std::string& name, std::size_t most_text = kMostText) {
  int both[2];
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
  LinkOptions options{.name = name, .peer = "peer", .most_text = most_text};
  options.silence = options.first_silence = 600s;
  return {Link::over(both[0], options), Link::over(both[1], options)};
}

std::pair<std::uint64_t, std::uint64_t> range_of(std::uint16_t partition) {
  __extension__ using Wide = unsigned __int128;
  const auto first = [](Wide p) { return static_cast<std::uint64_t>(((p << 64) + kPartitions - 1) / kPartitions); };
  return {first(partition), partition + 1 == kPartitions ? UINT64_MAX : first(partition + 1U) - 1};
}

// PE 0 has the source, the router, replica 0 and the sink; PE 1 has replica 1.
struct TwoPes {
  std::shared_ptr<KeySource> source = std::make_shared<KeySource>();
  std::array<std::shared_ptr<Counts>, 2> replicas{std::make_shared<Counts>(), std::make_shared<Counts>()};
  std::array<std::shared_ptr<Tap>, 2> taps{std::make_shared<Tap>(), std::make_shared<Tap>()};
  std::shared_ptr<Router> router;
  std::shared_ptr<Gather> out;
  OperatorId router_id = 0;
  std::int64_t mark = 0;
  Rig pe0;
  Rig pe1;

  TwoPes(const std::string& models, std::size_t keys, std::size_t hold_bytes) {
    const auto schema = row_schema();
    router = std::make_shared<Router>(schema, RouterOptions{.name = "router",
                                                            .keys = {"stream"},
                                                            .owners = std::vector<std::uint16_t>(kPartitions, 0),
                                                            .locals = {0},
                                                            .hold_bytes = hold_bytes});
    out = std::make_shared<Gather>(schema, GatherOptions{.name = "out", .local_ends = 1});
    taps[0]->gathers = {out};
    const auto add = [&models](Rig& rig, std::shared_ptr<Operator> op, std::size_t index) {
      return install(rig.scheduler, std::move(op), {.model = model_for(models, index)});
    };
    const OperatorId first = install(pe0.scheduler, key_source(keys, source));
    router_id = add(pe0, make_router(router), 0);
    const OperatorId count = add(pe0, counts(replicas[0]).make(), 1);
    const OperatorId tap = add(pe0, make_tap("tap", schema, taps[0]), 2);
    const OperatorId gather = install(pe0.scheduler, make_gather(out));
    pe0.specs.push_back(sink());
    const OperatorId last = add(pe0, pe0.specs.back().make(), 3);
    pe0.scheduler.connect(first, router_id);
    pe0.scheduler.connect(router_id, count);
    pe0.scheduler.connect(count, tap);
    pe0.scheduler.connect(tap, last);
    pe0.scheduler.connect(gather, last);
    pe0.scheduler.start({.thread_count = 1});
  }

  // Its links, as this side has them.
  std::array<std::weak_ptr<Link>, 2> start_second(const std::string& models) {
    const auto schema = row_schema();
    auto [near, far] = link_pair("router>counts1");
    auto [from, to] = link_pair("counts1>sink");
    auto in = std::make_shared<Gather>(schema, GatherOptions{.name = "in"});
    CHECK(in->add(far));
    CHECK(out->add(to));
    const OperatorId gather = install(pe1.scheduler, make_gather(in));
    TestOperator counting = counts(replicas[1]);
    counting.model = model_for(models, 1);
    const OperatorId count = install(pe1.scheduler, std::move(counting));
    const OperatorId tap = install(pe1.scheduler, make_tap("tap", schema, taps[1]));
    const OperatorId leave = install(pe1.scheduler, link_out("leave", schema, from));
    pe1.scheduler.connect(gather, count);
    pe1.scheduler.connect(count, tap);
    pe1.scheduler.connect(tap, leave);
    pe1.scheduler.start({.thread_count = 1});
    CHECK(command(router->attach(1, near, 1)) == Router::Answer::Done);
    return {near, to};
  }

  Router::Answer command(std::uint64_t ticket) {
    pe0.scheduler.poke(router_id);
    return router->wait(ticket, 60s);
  }

  void move(const std::vector<std::uint16_t>& partitions, std::uint16_t from, std::uint16_t to) {
    ++mark;
    CHECK(command(router->hold(partitions, from, mark, 1)) == Router::Answer::Done);
    CHECK(taps[from]->marks.wait(mark, 1, 60s));
    if (from == 1) CHECK(out->marks().wait(mark, 1, 60s));
    for (const std::uint16_t partition : partitions) {
      const auto [low, high] = range_of(partition);
      std::vector<std::byte> bytes;
      {
        const std::lock_guard guard(replicas[from]->mutex);
        bytes = replicas[from]->table.export_range(low, high);
      }
      {
        const std::lock_guard guard(replicas[to]->mutex);
        (void)replicas[to]->table.import_range(bytes);
      }
      const std::lock_guard guard(replicas[from]->mutex);
      (void)replicas[from]->table.remove_range(low, high);
    }
    CHECK(command(router->route(partitions, to, 1)) == Router::Answer::Done);
  }

  void finish() {
    source->enough = true;
    CHECK(pe0.scheduler.wait_for(300s));
    CHECK(pe1.scheduler.wait_for(300s));
    if (const auto failure = pe0.scheduler.failure()) fail(__FILE__, __LINE__, failure->operator_name + ": " + failure->message);
    if (const auto failure = pe1.scheduler.failure()) fail(__FILE__, __LINE__, failure->operator_name + ": " + failure->message);
    Sink& sink = pe0.last_sink();
    CHECK(!sink.disordered.load());
    CHECK_EQ(replicas[0]->wrong.load() + replicas[1]->wrong.load(), 0);
    CHECK_EQ(sink.rows.load(), std::accumulate(source->next.begin(), source->next.end(), std::int64_t{0}));
    CHECK_EQ(replicas[0]->table.size() + replicas[1]->table.size(), source->next.size());
    for (const auto& [key, next] : sink.next) CHECK_EQ(next, source->next[static_cast<std::size_t>(key)]);
  }
};

void move_about(const std::string& models, int moves, std::size_t hold_bytes) {
  TwoPes pes(models, 1000, hold_bytes);
  pes.start_second(models);
  std::mt19937 random(7);
  std::vector<std::uint16_t> owner(kPartitions, 0);
  for (int i = 0; i < moves; ++i) {
    const auto from = static_cast<std::uint16_t>(random() % 2);
    std::vector<std::uint16_t> partitions;
    for (std::uint16_t p = 0; p < kPartitions; ++p) {
      if (owner[p] == from && random() % 2 == 0) partitions.push_back(p);
    }
    const auto before = pes.pe0.last_sink().rows.load();
    pes.move(partitions, from, 1 - from);
    for (const std::uint16_t p : partitions) owner[p] = 1 - from;
    CHECK(eventually([&] { return pes.pe0.last_sink().rows.load() > before; }));
  }
  CHECK(pes.router->counters().ever_held > 0);
  pes.finish();
}

}  // namespace

TEST(keys_move_under_load_manual) { move_about("m", 60, 64U << 20); }
TEST(keys_move_under_load_dynamic) { move_about("d", 60, 64U << 20); }
TEST(keys_move_under_load_mixed) { move_about("dmdd", 60, 64U << 20); }
TEST(keys_move_although_little_may_wait) { move_about("dm", 60, 4096); }

TEST(the_end_waits_for_keys_that_move) {
  TwoPes pes("d", 100, 64U << 20);
  pes.start_second("d");
  std::vector<std::uint16_t> some(kPartitions / 2);
  std::iota(some.begin(), some.end(), std::uint16_t{0});
  CHECK(pes.command(pes.router->hold(some, 0, 77, 1)) == Router::Answer::Done);
  CHECK(pes.taps[0]->marks.wait(77, 1, 60s));
  pes.source->enough = true;
  CHECK(eventually([&] { return pes.router->counters().ended; }));
  CHECK(!pes.pe0.scheduler.wait_for(20ms));
  CHECK(pes.command(pes.router->hold(some, 0, 78, 1)) == Router::Answer::Done);
  CHECK(pes.taps[0]->marks.wait(78, 1, 60s));
  CHECK(!pes.router->counters().closed);
  CHECK(pes.command(pes.router->route(some, 0, 1)) == Router::Answer::Done);  // back: nothing was copied
  pes.finish();
  CHECK(pes.router->wait(pes.router->hold(some, 0, 79, 1), 60s) == Router::Answer::Ended);
  CHECK(pes.router->counters().closed);
  auto [near, far] = link_pair("router>2");  // one that comes too late hears a goodbye
  far->open_in(row_schema());
  CHECK(pes.router->wait(pes.router->attach(2, near, 1), 60s) == Router::Answer::Ended);
  Link::Received received;
  while (far->receive(received) == Link::Outcome::Ok) CHECK(received.header.kind == FrameKind::Mark);
  CHECK(far->failure().empty());
}

// A job that runs for months has had many replicas.
TEST(who_stays_lets_go_of_the_links_of_a_replica_that_left) {
  TwoPes pes("d", 100, 64U << 20);
  const auto links = pes.start_second("d");
  pes.move({1, 2}, 0, 1);
  pes.move({1, 2}, 1, 0);
  CHECK(pes.command(pes.router->detach(1, 1)) == Router::Answer::Done);
  CHECK(pes.pe1.scheduler.wait_for(60s));
  for (const auto& link : links) CHECK(eventually([&] { return link.expired(); }));
  const auto before = pes.pe0.last_sink().rows.load();
  CHECK(eventually([&] { return pes.pe0.last_sink().rows.load() > before; }));
  pes.finish();
}

// Behind the last record of an edge its tap, and nobody else, has the mark of that edge; other edges may go on.
TEST(an_edge_that_nobody_feeds_ends) {
  constexpr std::int64_t kEnd = kFirstEndMark + 5;
  auto edge = std::make_shared<Gather>(row_schema(), GatherOptions{.name = "edge", .end_mark = kEnd});
  auto source = std::make_shared<KeySource>();
  std::array<std::shared_ptr<Tap>, 2> taps{std::make_shared<Tap>(), std::make_shared<Tap>()};
  Rig rig;
  const OperatorId other = install(rig.scheduler, key_source(3, source));
  const OperatorId gather = install(rig.scheduler, make_gather(edge));
  const OperatorId first = install(rig.scheduler, make_tap("first", row_schema(), taps[0]));
  const OperatorId second = install(rig.scheduler, make_tap("second", row_schema(), taps[1]));
  const OperatorId last = install(rig.scheduler, sink());
  rig.scheduler.connect(other, first);
  rig.scheduler.connect(gather, first);
  rig.scheduler.connect(first, second);
  rig.scheduler.connect(second, last);
  rig.scheduler.start({.thread_count = 1});
  CHECK(!taps[0]->marks.wait(kEnd, 1, 0ms));
  edge->seal();
  CHECK(taps[0]->marks.wait(kEnd, 1, 60s));
  CHECK(!taps[1]->marks.wait(kEnd, 1, 0ms));
  edge->seal();
  source->enough = true;
  CHECK(rig.scheduler.wait_for(60s));
  CHECK(!rig.scheduler.failure().has_value());
}

TEST(an_idle_router_hears_commands_and_refuses_old_ones) {
  auto router = std::make_shared<Router>(
      row_schema(), RouterOptions{.name = "r", .keys = {"stream"}, .owners = std::vector<std::uint16_t>(8, 0), .locals = {0}});
  struct Gate : Guarded {
    std::atomic<bool> open{false};
  };
  auto gate = std::make_shared<Gate>();
  TestOperator idle{.name = "idle", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(gate), .outputs = {row_schema()}};
  idle.process = [](const void*, std::int64_t, void*, std::int64_t, void* state, rel_context* context) -> std::int64_t {
    static_cast<Gate*>(static_cast<Guarded*>(state))->open.wait(false);
    rel_finish(context);
    return 0;
  };
  Scheduler scheduler;
  const OperatorId from = install(scheduler, idle);
  const OperatorId id = install(scheduler, make_router(router));
  const OperatorId last = install(scheduler, sink());
  scheduler.connect(from, id);
  scheduler.connect(id, last);
  CHECK_THROWS(scheduler.poke(last), std::invalid_argument);
  scheduler.start({.thread_count = 1});
  const auto command = [&](std::uint64_t ticket) {
    scheduler.poke(id);
    return router->wait(ticket, 60s);
  };
  CHECK(command(router->hold({1, 2}, 0, 5, 3)) == Router::Answer::Done);
  CHECK(command(router->route({1, 2}, 0, 2)) == Router::Answer::Refused);
  CHECK(command(router->route({1, 2}, 1, 3)) == Router::Answer::Refused);
  CHECK(command(router->route({1, 9}, 0, 3)) == Router::Answer::Refused);
  CHECK(command(router->route({1, 2}, 0, 4)) == Router::Answer::Done);
  CHECK_EQ(router->counters().epoch, 4U);
  gate->open = true;
  gate->open.notify_all();
  CHECK(scheduler.wait_for(60s));
  CHECK(!scheduler.failure().has_value());
}

// Who takes a replica's output waits for its watermark from the start, or it would run ahead of it.
TEST(a_target_hears_of_a_watermark_before_there_is_a_record) {
  auto router = std::make_shared<Router>(
      row_schema(), RouterOptions{.name = "r", .keys = {"stream"}, .owners = std::vector<std::uint16_t>(8, 0), .locals = {0}});
  struct Gate : Guarded {
    bool told = false;
    std::atomic<bool> open{false};
  };
  auto gate = std::make_shared<Gate>();
  TestOperator timed{.name = "timed", .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(gate), .outputs = {row_schema()}};
  timed.process = [](const void*, std::int64_t, void*, std::int64_t, void* state, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Gate*>(static_cast<Guarded*>(state));
    if (!std::exchange(self.told, true)) {
      context->mark({MarkKind::Watermark, 42});
      return 0;
    }
    self.open.wait(false);
    rel_finish(context);
    return 0;
  };
  Scheduler scheduler;
  const OperatorId from = install(scheduler, timed);
  const OperatorId id = install(scheduler, make_router(router));
  const OperatorId last = install(scheduler, sink());
  scheduler.connect(from, id);
  scheduler.connect(id, last);
  auto [near, far] = link_pair("router>1");
  far->open_in(row_schema());
  (void)router->attach(1, near, 1);  // as an element does before it starts
  scheduler.start({.thread_count = 1});
  Link::Received received;
  CHECK(far->receive(received) == Link::Outcome::Ok);
  CHECK(received.header.kind == FrameKind::Mark);
  CHECK_EQ(received.header.value, 42);
  gate->open = true;
  gate->open.notify_all();
  far->interrupt();
  CHECK(scheduler.wait_for(60s));
}

// No user has named a router, so what it throws has its name.
TEST(a_watermark_does_not_overtake_held_records) {
  HeldWatermark watermark;
  CHECK(!watermark.passed().has_value() && !watermark.take_due().has_value());
  CHECK(watermark.arrive({MarkKind::Watermark, 1}, false));
  CHECK_EQ(watermark.passed()->value, 1);
  CHECK(!watermark.arrive({MarkKind::Watermark, 2}, true));
  CHECK(!watermark.passed().has_value());
  CHECK_EQ(watermark.take_due()->value, 2);
  CHECK(!watermark.take_due().has_value());
  CHECK_EQ(watermark.passed()->value, 2);
}

TEST(what_a_router_throws_has_its_name) {
  auto router = std::make_shared<Router>(
      text_row_schema(),
      RouterOptions{.name = "words->count router", .keys = {"text"}, .owners = std::vector<std::uint16_t>(8, 0), .locals = {}});
  TestOperator texts{.name = "texts", .flags = REL_SOURCE, .outputs = {text_row_schema()}};
  texts.process = [](const void*, std::int64_t, void* out, std::int64_t, void*, rel_context* context) -> std::int64_t {
    constexpr std::uint32_t kBytes = 2000;
    auto* const text = static_cast<char*>(rel_allocate(context, kBytes));
    std::memset(text, 'x', kBytes);
    *static_cast<TextRow*>(out) = {1, StringView(text, kBytes)};
    rel_finish(context);
    return 1;
  };
  Scheduler scheduler;
  scheduler.connect(install(scheduler, texts), install(scheduler, make_router(router)));
  auto [near, far] = link_pair("router>0", 1000);
  far->open_in(text_row_schema());
  (void)router->attach(0, near, 1);
  scheduler.start({.thread_count = 1});
  CHECK(scheduler.wait_for(60s));
  const std::string message = scheduler.failure().value().message;
  CHECK(message.starts_with("words->count router: a tuple has more text than can go"));
}

REL_TEST_MAIN
