// The bytes of exported state, of each kind of table: snapshots of users have them. A test that reads what it has written sees no change that is
// made to both sides, such as a byte more in each row; this one does.
//
// All fresh memory has a filling here, so that bytes of it that reach an export are noticed.
//
// Who changes a format on purpose changes its version (the magic, or the form of a kind), decides what becomes of older snapshots, and replaces
// the lines below by those that the failure prints.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "operator/stages.hpp"
#include "rayelastic/net/frame_checksum.hpp"
#include "rayelastic/operator/stages.hpp"
#include "rayelastic/operators/delay.hpp"
#include "rayelastic/operators/split.hpp"
#include "state/timed_cases.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

// Fresh memory, as rows have it where they have no value.
void* filled(void* memory, std::size_t bytes) {
  if (memory == nullptr) throw std::bad_alloc();
  return std::memset(memory, check::unwritten, bytes);
}

}  // namespace

void* operator new(std::size_t bytes) { return filled(std::malloc(bytes), bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  return filled(std::aligned_alloc(step, (bytes + step - 1) / step * step), bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace {

constexpr std::uint64_t kEverything = UINT64_MAX;

struct Format {
  std::string kind;
  std::size_t bytes;
  std::uint32_t checksum;

  bool operator==(const Format&) const = default;
};

Format format_of(std::string kind, std::span<const std::byte> bytes) {
  return {std::move(kind), bytes.size(), crc32c(0, bytes.data(), bytes.size())};
}

Format format_of(std::string kind, StateTable& state) { return format_of(std::move(kind), state.export_range(0, kEverything)); }

Script rows() { return Script(7, 60, 1); }

KeyedState keyed(const TimeToLive& ttl = {}) {
  const std::vector<std::string> keys = {"key"};
  const std::vector<std::size_t> texts = {8};
  return {kRows, keys, 24, std::vector<std::byte>(24), texts, ttl};
}

Format keyed_format(std::string kind, const TimeToLive& ttl) {
  const Script script = rows();
  KeyedState state = keyed(ttl);
  std::int64_t number = 0;
  for (const Step& step : script.steps) {
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

Format operator_format(std::string kind, const std::shared_ptr<Operator>& op, std::int32_t ports = 1) {
  std::vector<std::string> log;
  const Script script(7, 60, ports);
  for (const Step& step : script.steps) CHECK(apply(op, step, log) >= 0);
  return format_of(std::move(kind), *op->state());
}

// With zero for the time that each item has to go, which is the clock's.
Format delay_format() {
  constexpr std::chrono::nanoseconds kDelay = std::chrono::hours(1);
  const std::shared_ptr<Operator> op = make_delay("d", kRows, kDelay, 1000);
  const Script script = rows();
  std::vector<std::string> log;
  for (const Step& step : script.steps) CHECK(apply(op, step, log) >= 0);
  std::vector<std::byte> bytes = op->state()->export_range(0, kEverything);
  std::byte* next = bytes.data() + sizeof(StateHeader);
  std::uint64_t items;
  std::memcpy(&items, next, sizeof items);
  for (next += sizeof items; items > 0; --items, next += 3 * sizeof(std::int64_t)) {
    std::int64_t left;
    std::memcpy(&left, next, sizeof left);
    CHECK(left > 0 && left <= kDelay.count());
    std::memset(next, 0, sizeof left);
  }
  return format_of("delay", bytes);
}

Format stages_format() {
  const Script script = rows();
  const auto [stages, table] = make_stages({kRows, kRows}, nullptr);
  for (const Step& step : script.steps)
    stages->buffers()[0].append({reinterpret_cast<const std::byte*>(step.rows.data()), step.rows.size(), sizeof(Row)}, step.rows.size());
  return format_of("stages", *table);
}

std::vector<Format> formats() {
  std::vector<Format> all = {keyed_format("keys", {}),
                             keyed_format("keys that live by event time", {.ticks = 1000, .field = "at"}),
                             operator_format("event time", make_event_time("e", kRows, "at", 3)),
                             delay_format(),
                             operator_format("round robin", make_round_robin("s", kRows, 3)),
                             stages_format()};
  for (std::size_t i = 0; i < kCases.size(); ++i)
    all.push_back(operator_format("case " + std::to_string(i) + " of timed_cases.hpp", kCases[i].make(), kCases[i].ports));
  for (const Case& timers : kTimers) all.push_back(operator_format("timers", timers.make()));
  return all;
}

const std::vector<Format> kFormats = {
    {"keys", 354, 0xb2a69f96},
    {"keys that live by event time", 418, 0xb81392ae},
    {"event time", 41, 0x4920b9cd},
    {"delay", 8757, 0xadc2c3fe},
    {"round robin", 40, 0x2b31d169},
    {"stages", 7677, 0xb40f050a},
    {"case 0 of timed_cases.hpp", 3825, 0x6c09b6f5},
    {"case 1 of timed_cases.hpp", 39206, 0x81174fb5},
    {"case 2 of timed_cases.hpp", 13661, 0x56db1ffc},
    {"case 3 of timed_cases.hpp", 4028, 0xeabf53b3},
    {"case 4 of timed_cases.hpp", 6629, 0xdb82987b},
    {"case 5 of timed_cases.hpp", 4017, 0x4bd42179},
    {"case 6 of timed_cases.hpp", 4960, 0x14bc3e15},
    {"case 7 of timed_cases.hpp", 11968, 0x14e11193},
    {"case 8 of timed_cases.hpp", 7193, 0xec2e936f},
    {"case 9 of timed_cases.hpp", 4081, 0x0a498aba},
    {"case 10 of timed_cases.hpp", 1612, 0xf764f43f},
    {"case 11 of timed_cases.hpp", 1766, 0xa0aebbb1},
    {"case 12 of timed_cases.hpp", 738, 0x0c27e5ae},
    {"case 13 of timed_cases.hpp", 7947, 0x15f5c797},
    {"case 14 of timed_cases.hpp", 622, 0x4187275c},
    {"case 15 of timed_cases.hpp", 622, 0xc896f7a5},
    {"case 16 of timed_cases.hpp", 624, 0xfd1d5691},
    {"case 17 of timed_cases.hpp", 579, 0xda8efd89},
    {"case 18 of timed_cases.hpp", 1191, 0xac2d75e3},
    {"case 19 of timed_cases.hpp", 1191, 0xac2d75e3},
    {"case 20 of timed_cases.hpp", 635, 0x2b0861ba},
    {"case 21 of timed_cases.hpp", 635, 0x845a14ab},
    {"timers", 884, 0x1368af17},
    {"timers", 618, 0x9b37e2cc},
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

TEST(no_exported_byte_is_one_that_nobody_wrote) {
  unwritten = 0x55;
  const std::vector<Format> some = formats();
  unwritten = 0xAA;
  const std::vector<Format> others = formats();
  unwritten = 0;
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (some[i] != others[i]) fail(__FILE__, __LINE__, some[i].kind + " exports memory that nobody wrote");
  }
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
