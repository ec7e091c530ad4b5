// The bytes of exported state, of each kind of table: snapshots of users have them. A test that reads what it has written sees no change that is
// made to both sides, such as a byte more in each row; this one does.
//
// Of windows only the size is compared: their accumulators have bytes between their fields that nobody writes.
//
// Who changes a format on purpose changes its version (the magic, or the form of a kind), decides what becomes of older snapshots, and replaces
// the lines below by those that the failure prints.
#include <cstdio>
#include <numeric>

#include "operator/stages.hpp"
#include "rayelastic/net/frame_checksum.hpp"
#include "rayelastic/operator/stages.hpp"
#include "rayelastic/operators/delay.hpp"
#include "rayelastic/operators/split.hpp"
#include "rayelastic/operators/time/process.hpp"
#include "state/timed_cases.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::uint64_t kEverything = UINT64_MAX;

struct Format {
  std::string kind;
  std::size_t bytes;
  std::uint32_t checksum;

  bool operator==(const Format&) const = default;
};

Format format_of(std::string kind, StateTable& state, bool only_size = false) {
  const std::vector<std::byte> bytes = state.export_range(0, kEverything);
  return {std::move(kind), bytes.size(), only_size ? 0 : crc32c(0, bytes.data(), bytes.size())};
}

const Script& rows() {
  static const Script script(7, 60, 1);
  return script;
}

KeyedState keyed(const TimeToLive& ttl = {}) {
  const std::vector<std::string> keys = {"key"};
  const std::vector<std::size_t> texts = {8};
  return {kRows, keys, 24, std::vector<std::byte>(24), texts, ttl};
}

Format keyed_format(std::string kind, const TimeToLive& ttl) {
  KeyedState state = keyed(ttl);
  std::int64_t number = 0;
  for (const Step& step : rows().steps) {
    std::vector<void*> slots(step.rows.size());
    state.lookup(reinterpret_cast<const std::byte*>(step.rows.data()), step.rows.size(), slots.data());
    for (std::size_t i = 0; i < slots.size(); ++i) {
      std::memcpy(slots[i], &++number, sizeof number);
      const StringView& note = step.rows[i].note;
      state.keep_text(static_cast<std::byte*>(slots[i]) + 8, note.data(), note.length);
    }
  }
  return format_of(std::move(kind), state);
}

Format operator_format(std::string kind, const std::shared_ptr<Operator>& op, std::int32_t ports = 1, bool only_size = false) {
  std::vector<std::string> log;
  const Script script(7, 60, ports);
  for (const Step& step : script.steps) CHECK(apply(op, step, log) >= 0);
  return format_of(std::move(kind), *op->state(), only_size);
}

// Sets a timer for each record.
std::int64_t on_tuple(const void* in, std::int64_t, void*, std::int64_t, void* slots, rel_context* context) {
  const TimerCommand command{TimerCommand::At, static_cast<const Row*>(in)->at + 20, 0};
  std::memcpy(*static_cast<void**>(slots), &command.ticks, sizeof command.ticks);
  return rel_emit(context, kTimerPort, &command, 1) == 0 ? 0 : REL_STOPPED;
}

std::int64_t on_time(const void*, std::int64_t, void*, std::int64_t, void*, rel_context*) { return 0; }

std::shared_ptr<Operator> timers() {
  const auto moment = schema_of({field("key", Type::String), field("at", Type::Int64)});
  const auto unexplained = [](const std::byte*) { return std::string(); };
  ProcessOptions options;
  options.time = "at";
  options.initial = std::vector<std::byte>(8);
  options.why_tuple = options.why_moment = unexplained;
  return make_process("timers", {kRows, kRows, moment}, {"key"}, {.on_tuple = on_tuple, .on_time = on_time}, std::move(options), nullptr);
}

Format stages_format() {
  const auto [stages, table] = make_stages({kRows, kRows}, nullptr);
  for (const Step& step : rows().steps)
    stages->buffers()[0].append({reinterpret_cast<const std::byte*>(step.rows.data()), step.rows.size(), sizeof(Row)}, step.rows.size());
  return format_of("stages", *table);
}

std::vector<Format> formats() {
  std::vector<Format> all = {keyed_format("keys", {}),
                             keyed_format("keys that live by event time", {.ticks = 1000, .field = "at"}),
                             operator_format("event time", make_event_time("e", kRows, "at", 3)),
                             operator_format("timers", timers()),
                             operator_format("delay", make_delay("d", kRows, std::chrono::hours(1), 1000), 1, true),
                             operator_format("round robin", make_round_robin("s", kRows, 3)),
                             stages_format()};
  for (std::size_t i = 0; i < kCases.size(); ++i)
    all.push_back(operator_format("case " + std::to_string(i) + " of timed_cases.hpp", kCases[i].make(), kCases[i].ports, i < kWindows));
  return all;
}

const std::vector<Format> kFormats = {
    {"keys", 354, 0xb2a69f96},
    {"keys that live by event time", 418, 0xb81392ae},
    {"event time", 41, 0x4920b9cd},
    {"timers", 868, 0xf57babec},
    {"delay", 7893, 0x00000000},
    {"round robin", 40, 0x2b31d169},
    {"stages", 6813, 0x8c08bf32},
    {"case 0 of timed_cases.hpp", 3825, 0x00000000},
    {"case 1 of timed_cases.hpp", 39206, 0x00000000},
    {"case 2 of timed_cases.hpp", 13661, 0x00000000},
    {"case 3 of timed_cases.hpp", 4028, 0x00000000},
    {"case 4 of timed_cases.hpp", 6629, 0x00000000},
    {"case 5 of timed_cases.hpp", 4017, 0x00000000},
    {"case 6 of timed_cases.hpp", 4960, 0x00000000},
    {"case 7 of timed_cases.hpp", 11968, 0x00000000},
    {"case 8 of timed_cases.hpp", 7193, 0x00000000},
    {"case 9 of timed_cases.hpp", 1590, 0x1eebaf39},
    {"case 10 of timed_cases.hpp", 674, 0x9ba1ff43},
    {"case 11 of timed_cases.hpp", 7083, 0x22f1dea9},
    {"case 12 of timed_cases.hpp", 566, 0xafc2fc88},
    {"case 13 of timed_cases.hpp", 566, 0x4a6bf4b0},
    {"case 14 of timed_cases.hpp", 523, 0xb0200859},
    {"case 15 of timed_cases.hpp", 1071, 0x72fd4734},
    {"case 16 of timed_cases.hpp", 1071, 0x72fd4734},
    {"case 17 of timed_cases.hpp", 579, 0x3e188538},
    {"case 18 of timed_cases.hpp", 579, 0xf344eaec},
};

}  // namespace

TEST(exported_bytes_stay_as_they_are) {
  const std::vector<Format> now = formats();
  std::size_t changed = now.size() == kFormats.size() ? 0 : 1;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (i < kFormats.size() && now[i] == kFormats[i]) continue;
    ++changed;
    std::printf("    {\"%s\", %zu, 0x%08x},\n", now[i].kind.c_str(), now[i].bytes, now[i].checksum);
  }
  CHECK_EQ(changed, 0U);
}

TEST(a_key_has_the_bytes_that_its_format_says) {
  KeyedState state = keyed();
  const std::string word = "a key of more than twelve bytes";
  const std::vector<StringView> keys = {view(word), view("b")};
  void* slots[2];
  state.lookup_keys(keys.data(), keys.size(), slots);
  state.keep_text(static_cast<std::byte*>(slots[0]) + 8, word.data(), static_cast<std::uint32_t>(word.size()));
  const std::size_t records = 2 * (4 + 1 + state.state_size());
  CHECK_EQ(state.export_range(0, kEverything).size(), sizeof(StateHeader) + records + word.size() + 1 + word.size());
}

REL_TEST_MAIN
