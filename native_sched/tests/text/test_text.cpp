// Texts and keyed state through the scheduler: chunks live as long as a run refers to them and no longer. Meant for AddressSanitizer.
#include <cstring>

#include "pipeline.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/keyed_state.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

struct Line {
  std::int64_t sequence = 0;
  StringView text;
};

std::shared_ptr<const Schema> line_schema() {
  return std::make_shared<Schema>(
      std::vector<Field>{{.name = "sequence", .type = Type::Int64, .format = "l"}, {.name = "text", .type = Type::String, .format = "u"}});
}

std::string text_of(std::int64_t sequence, std::size_t hops) {
  return std::string(static_cast<std::size_t>(sequence % 40), 'x') + std::to_string(sequence) + std::string(hops, '+');
}

StringView make_text(rel_context* context, const std::string& text) {
  char* room = static_cast<char*>(rel_allocate(context, static_cast<std::int64_t>(text.size())));
  CHECK(room != nullptr);
  std::memcpy(room, text.data(), text.size());
  return {room, static_cast<std::uint32_t>(text.size())};
}

constexpr std::int64_t kLines = 20'000;
std::atomic<int> chunks_alive{0};

// Half of the runs attach chunks of their own, the others allocate.
TestOperator line_source() {
  TestOperator spec{.name = "lines", .flags = REL_SOURCE, .state = std::make_shared<std::int64_t>(0), .outputs = {line_schema()}};
  spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& next = *static_cast<std::int64_t*>(opaque);
    auto* lines = static_cast<Line*>(out);
    const std::int64_t made = std::min({capacity, next % 97 + 1, kLines - next});
    std::string* owned = nullptr;
    if (next % 2 == 0) {
      owned = new std::string;
      owned->reserve(static_cast<std::size_t>(made) * 64);
      ++chunks_alive;
      const ChunkRef chunk = Chunk::adopt(
          owned->data(), owned->capacity(),
          [](void* string) {
            delete static_cast<std::string*>(string);
            --chunks_alive;
          },
          owned);
      context->attach(chunk.get());
    }
    for (std::int64_t index = 0; index < made; ++index, ++next) {
      const std::string text = text_of(next, 0);
      if (owned == nullptr) {
        lines[index] = {next, make_text(context, text)};
      } else {
        const std::size_t start = owned->size();
        owned->append(text);
        lines[index] = {next, StringView(owned->data() + start, static_cast<std::uint32_t>(text.size()))};
      }
    }
    if (next == kLines) rel_finish(context);
    return made;
  };
  return spec;
}

// Appends a '+' to each text: new text from the arena, in one operator of two; the others pass the view on.
TestOperator line_map(bool rewrites) {
  TestOperator spec{.name = "map", .flags = REL_ONE_TO_ONE | REL_IN_PLACE, .inputs = {line_schema()}, .outputs = {line_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
    if (in != out) std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Line));
    return n;
  };
  if (rewrites) {
    spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context* context) -> std::int64_t {
      for (std::int64_t index = 0; index < n; ++index) {
        const Line& line = static_cast<const Line*>(in)[index];
        const StringView text = make_text(context, std::string(line.text.view()) + '+');
        static_cast<Line*>(out)[index] = {line.sequence, text};
      }
      return n;
    };
  }
  return spec;
}

struct LineSink {
  std::int64_t next = 0;
  std::size_t hops = 0;
  bool wrong = false;
};

TestOperator line_sink(std::size_t hops) {
  auto state = std::make_shared<LineSink>();
  state->hops = hops;
  TestOperator spec{.name = "sink", .flags = REL_SINK, .state = state, .inputs = {line_schema()}};
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<LineSink*>(opaque);
    for (std::int64_t index = 0; index < n; ++index, ++self.next) {
      const Line& line = static_cast<const Line*>(in)[index];
      self.wrong = self.wrong || line.sequence != self.next || line.text.view() != text_of(self.next, self.hops);
    }
    return 0;
  };
  return spec;
}

void run_lines(const std::string& models, SchedulerOptions options) {
  Scheduler scheduler(options);
  OperatorId previous = install(scheduler, line_source());
  std::size_t hops = 0;
  for (std::size_t index = 0; index < 9; ++index) {
    const bool rewrites = index % 2 == 1;
    hops += rewrites ? 1 : 0;
    TestOperator spec = line_map(rewrites);
    spec.model = model_for(models, index);
    const OperatorId id = install(scheduler, spec);
    scheduler.connect(previous, id);
    previous = id;
  }
  TestOperator last = line_sink(hops);
  last.model = model_for(models, 9);
  scheduler.connect(previous, install(scheduler, last));
  scheduler.start({.thread_count = 2});
  CHECK(scheduler.wait_for(std::chrono::seconds(300)));
  CHECK(!scheduler.failure().has_value());
  const auto& end = *static_cast<const LineSink*>(last.state.get());
  CHECK_EQ(end.next, kLines);
  CHECK(!end.wrong);
}

}  // namespace

TEST(texts_survive_every_hop) {
  for (const char* models : {"m", "d", "t", "md", "mmdt"}) {
    run_lines(models, {});
    run_lines(models, {.queue_records = 16});
    run_lines(models, {.queue_bytes = 1});  // one run with text at a time
    CHECK_EQ(chunks_alive.load(), 0);
  }
}

TEST(deep_copies_are_equal) {
  for (const char* models : {"m", "d", "md"}) run_lines(models, {.queue_records = 64, .deep_copy = true});
  CHECK_EQ(chunks_alive.load(), 0);
}

TEST(texts_under_way_are_released_by_stop) {
  for (const char* models : {"d", "md"}) {
    Scheduler scheduler({.queue_records = 32});
    OperatorId previous = install(scheduler, line_source());
    for (std::size_t index = 0; index < 4; ++index) {
      TestOperator spec = line_map(index % 2 == 0);
      spec.model = model_for(models, index);
      const OperatorId id = install(scheduler, spec);
      scheduler.connect(previous, id);
      previous = id;
    }
    scheduler.connect(previous, install(scheduler, line_sink(2)));
    scheduler.start({.thread_count = 2});
    CHECK(eventually([&] { return scheduler.sample().operators[3].tuples_out > 500; }));
    scheduler.stop(false);
  }
  CHECK_EQ(chunks_alive.load(), 0);
}

// Counts per key and keeps the key's last text in the state; the state belongs to the table.
TEST(keyed_operators_get_the_state_of_their_keys) {
  struct Tally {
    std::int64_t count = 0;
    StringView last;
  };
  struct Seen {
    std::map<std::int64_t, std::int64_t> counts;  // by key
    bool wrong = false;
  };
  const auto keyed_schema = line_schema();
  for (const char* models : {"m", "d", "t"}) {
    const Tally initial{};
    const std::size_t text_offset = offsetof(Tally, last);
    const std::vector<std::string> keys{"sequence"};
    auto table =
        std::make_shared<KeyedState>(keyed_schema, keys, sizeof(Tally), std::as_bytes(std::span(&initial, 1)), std::span(&text_offset, 1));
    Scheduler scheduler;
    const OperatorId from = install(scheduler, line_source());
    TestOperator fold{.name = "fold", .inputs = {line_schema()}, .outputs = {line_schema()}, .model = model_for(models, 0)};
    fold.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void*, rel_context*) -> std::int64_t {
      std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Line));
      for (std::int64_t index = 0; index < n; ++index) static_cast<Line*>(out)[index].sequence %= 10;
      return n;
    };
    TestOperator tally{
        .name = "tally", .flags = REL_ONE_TO_ONE | REL_KEYED, .inputs = {keyed_schema}, .outputs = {line_schema()}, .keyed = table};
    tally.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* slots, rel_context* context) -> std::int64_t {
      for (std::int64_t index = 0; index < n; ++index) {
        auto& state = *static_cast<Tally*>(static_cast<void**>(slots)[index]);
        const Line& line = static_cast<const Line*>(in)[index];
        ++state.count;
        if (rel_keep_text(context, &state.last, line.text.data(), line.text.length) != 0) return REL_FAILED(index);
        static_cast<Line*>(out)[index] = {line.sequence, make_text(context, std::to_string(state.count) + " of a key of ten")};
      }
      return n;
    };
    tally.model = model_for(models, 0);
    auto seen = std::make_shared<Seen>();
    TestOperator end{.name = "end", .flags = REL_SINK, .state = seen, .inputs = {line_schema()}};
    end.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
      auto& self = *static_cast<Seen*>(opaque);
      for (std::int64_t index = 0; index < n; ++index) {
        const Line& line = static_cast<const Line*>(in)[index];
        const std::string expected = std::to_string(++self.counts[line.sequence]) + " of a key of ten";
        self.wrong = self.wrong || line.text.view() != expected;
      }
      return 0;
    };
    const OperatorId fold_id = install(scheduler, fold);
    const OperatorId tally_id = install(scheduler, tally);
    scheduler.connect(from, fold_id);
    scheduler.connect(fold_id, tally_id);
    scheduler.connect(tally_id, install(scheduler, end));
    scheduler.start({.thread_count = 2});
    CHECK(scheduler.wait_for(std::chrono::seconds(300)));
    CHECK(!scheduler.failure().has_value());
    scheduler.stop(true);
    CHECK(!seen->wrong);
    CHECK_EQ(seen->counts.size(), 10U);
    CHECK_EQ(table->size(), 10U);
    for (const auto& [key, count] : seen->counts) CHECK_EQ(count, kLines / 10);
    const std::string last = text_of(kLines - 1, 0);
    bool found = false;
    table->for_each(
        [&](const StringView&, std::byte* state) { found = found || reinterpret_cast<const Tally*>(state)->last.view() == last; });
    CHECK(found);
  }
}

REL_TEST_MAIN
