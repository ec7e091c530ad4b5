// Keys that weren't touched for longer than their time to live: forgotten when they come again, by event time and by the clock; swept;
// exported with the time of their last touch.
#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "check.hpp"
#include "fake_context.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/state/keyed_state.hpp"

using namespace rayelastic;

namespace {

Field field(std::string name, Type type) { return {std::move(name), type, false, "", 0, -1}; }

struct Record {
  StringView word;
  std::int64_t at;
};

const auto kSchema = std::make_shared<const Schema>(std::vector<Field>{field("word", Type::String), field("at", Type::Int64)});
const std::vector<std::string> kWord = {"word"};
const std::vector<std::byte> kZeros(64);
const std::vector<std::size_t> kNote = {8};  // state {count int64, note string}
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

Record record(const std::string& word, std::int64_t at) { return {{word.data(), static_cast<std::uint32_t>(word.size())}, at}; }

TimeToLive by_event_time(std::int64_t ticks) { return {.ticks = ticks, .field = "at"}; }
TimeToLive by_clock(std::int64_t ticks, std::int64_t& now) {
  return {.ticks = ticks, .clock = [&now] { return now; }};
}

std::int64_t& count_of(void* state) { return *static_cast<std::int64_t*>(state); }
StringView& note_of(void* state) { return *reinterpret_cast<StringView*>(static_cast<std::byte*>(state) + 8); }
void set_note(KeyedState& table, void* state, const std::string& text) {
  table.keep_text(&note_of(state), text.data(), static_cast<std::uint32_t>(text.size()));
}

// A run; its slots.
std::vector<void*> run(KeyedState& table, const std::vector<Record>& records, std::int64_t watermark = kNoWatermark) {
  std::vector<void*> slots(records.size());
  table.begin_run(watermark, records.size());
  table.lookup(reinterpret_cast<const std::byte*>(records.data()), records.size(), slots.data());
  return slots;
}

std::string name_of(std::size_t i) { return "a rather long key, number " + std::to_string(i); }

}  // namespace

TEST(a_key_that_comes_too_late_finds_the_first_state) {
  KeyedState table(kSchema, kWord, 8, kZeros, {}, by_event_time(10));
  CHECK_EQ(++count_of(run(table, {record("a", 0)})[0]), 1);
  CHECK_EQ(++count_of(run(table, {record("a", 10)})[0]), 2);  // not more than the time to live
  CHECK_EQ(++count_of(run(table, {record("a", 5)})[0]), 3);   // an earlier one doesn't take the touch back
  CHECK_EQ(++count_of(run(table, {record("a", 20)})[0]), 4);
  CHECK_EQ(++count_of(run(table, {record("a", 31)})[0]), 1);
  CHECK_EQ(table.size(), 1U);
  CHECK_EQ(++count_of(run(table, {record("a", 32)}, 41)[0]), 2);  // the watermark is 10 after the touch
  CHECK_EQ(++count_of(run(table, {record("a", 33)}, 43)[0]), 1);  // and 11: the record is late
}

TEST(a_key_may_be_forgotten_within_a_run) {
  KeyedState table(kSchema, kWord, 24, kZeros, kNote, by_event_time(10));
  const std::string note(40, 'n');
  const std::string longer = name_of(1);
  const std::vector<void*> slots = run(table, {record(longer, 0), record("b", 3), record(longer, 4), record(longer, 15), record("b", 13)});
  CHECK(slots[0] == slots[2] && slots[0] != slots[3] && slots[1] == slots[4]);
  CHECK_EQ(table.size(), 2U);
  CHECK(KeyedState::key_of(slots[0]).view() == longer && KeyedState::key_of(slots[3]).view() == longer);
  set_note(table, slots[0], note);  // the run goes through its slots in order
  CHECK(note_of(slots[2]).view() == note && note_of(slots[3]).view().empty());
  std::size_t seen = 0;
  table.for_each([&](const StringView&, std::byte* state) {
    CHECK(state != slots[0]);
    ++seen;
  });
  CHECK_EQ(seen, 2U);
  CHECK_EQ(table.remove_range(0, kAll), 2U);
  std::vector<void*> dropped;
  table.begin_run(kNoWatermark, 0, [&](void* state) { dropped.push_back(state); });
  CHECK(dropped == std::vector<void*>{slots[0]});
  CHECK_EQ(table.size(), 0U);
}

TEST(many_keys_do_as_a_map_does) {
  std::mt19937_64 random(7);
  KeyedState table(kSchema, kWord, 8, kZeros, {}, by_event_time(50));
  struct Kept {
    std::int64_t touched, count;
  };
  std::map<std::string, Kept> expected;
  std::int64_t latest = 0, watermark = kNoWatermark;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> words(1 + random() % 70);
    std::vector<Record> records;
    for (std::string& word : words) {
      word = name_of(random() % 300);
      latest += static_cast<std::int64_t>(random() % 2);
      records.push_back(record(word, latest - static_cast<std::int64_t>(random() % 20)));
    }
    const std::vector<void*> slots = run(table, records, watermark);
    for (std::size_t i = 0; i < words.size(); ++i) {
      auto [at, fresh] = expected.try_emplace(words[i], Kept{records[i].at, 0});
      Kept& kept = at->second;
      if (!fresh && std::max(records[i].at, watermark) - kept.touched > 50) kept = {records[i].at, 0};
      kept.touched = std::max(kept.touched, records[i].at);
      CHECK_EQ(++count_of(slots[i]), ++kept.count);
    }
    watermark = latest - 21;
  }
}

TEST(sweeping_bounds_memory_and_gives_texts_back) {
  constexpr std::int64_t kTtl = 1000;
  KeyedState table(kSchema, kWord, 24, kZeros, kNote, by_event_time(kTtl));
  std::size_t most = 0, settled = 0;
  for (std::int64_t at = 0; at < 200'000; ++at) {  // a new key each tick, which never comes again
    const std::string word = name_of(static_cast<std::size_t>(at));
    set_note(table, run(table, {record(word, at)}, at - 1)[0], "a note of more than twelve bytes, which needs room");
    most = std::max(most, table.size());
    if (at == 20'000) settled = table.bytes();
  }
  CHECK(most >= kTtl && most <= 2 * kTtl + 2);
  CHECK(table.bytes() <= settled + 64 * 1024);
  for (int i = 0; i < 4; ++i) (void)run(table, std::vector<Record>(kTtl, record("last", 300'000)), 299'999);
  CHECK_EQ(table.size(), 1U);
}

TEST(without_event_time_the_clock_counts) {
  std::int64_t now = 1'000'000;
  KeyedState table(kSchema, kWord, 8, kZeros, {}, by_clock(10, now));
  CHECK_EQ(++count_of(run(table, {record("a", 0)})[0]), 1);
  now += 10;
  CHECK_EQ(++count_of(run(table, {record("a", 1'000)})[0]), 2);  // what the record says doesn't matter
  now += 11;
  const std::vector<void*> slots = run(table, {record("a", 0), record("a", 0)}, 5);
  CHECK(slots[0] == slots[1]);
  CHECK_EQ(count_of(slots[0]), 0);
}

TEST(touches_move_with_the_state) {
  KeyedState table(kSchema, kWord, 24, kZeros, kNote, by_event_time(10));
  const std::vector<void*> slots = run(table, {record("a", 100), record(name_of(2), 105), record("gone", 0), record("gone", 95)});
  for (std::size_t i = 0; i < slots.size(); ++i) {
    count_of(slots[i]) = static_cast<std::int64_t>(i + 1);
    set_note(table, slots[i], "a note that is longer than twelve bytes");
  }
  const std::vector<std::byte> bytes = table.export_range(0, kAll);
  KeyedState other(kSchema, kWord, 24, kZeros, kNote, by_event_time(5));  // another length may be declared
  CHECK_EQ(other.import_range(bytes), 3U);
  const std::vector<void*> found = run(other, {record("a", 106), record(name_of(2), 106), record("gone", 100)});
  CHECK_EQ(count_of(found[0]), 0);
  CHECK_EQ(count_of(found[1]), 2);
  CHECK_EQ(count_of(found[2]), 4);
  CHECK(note_of(found[0]).view().empty() && note_of(found[1]).view() == "a note that is longer than twelve bytes");

  std::int64_t now = 0;
  KeyedState without(kSchema, kWord, 24, kZeros, kNote), clocked(kSchema, kWord, 24, kZeros, kNote, by_clock(10, now));
  CHECK_THROWS(without.import_range(bytes), StateError);
  CHECK_THROWS(clocked.import_range(bytes), StateError);
  CHECK_THROWS(other.import_range(without.export_range(0, kAll)), StateError);
  std::vector<std::byte> bad = bytes;
  const std::int64_t never = INT64_MIN;
  std::memcpy(bad.data() + 32 + 5 + 1, &never, sizeof never);  // the touch of "a"
  KeyedState fresh(kSchema, kWord, 24, kZeros, kNote, by_event_time(5));
  CHECK_THROWS(fresh.import_range(bad), StateError);
  CHECK_EQ(fresh.size(), 0U);
}

TEST(by_the_clock_ages_move) {
  std::int64_t here = 5000, there = 70;
  KeyedState table(kSchema, kWord, 8, kZeros, {}, by_clock(10, here));
  ++count_of(run(table, {record("a", 0)})[0]);
  here += 4;
  ++count_of(run(table, {record("b", 0)})[0]);
  here += 3;
  KeyedState other(kSchema, kWord, 8, kZeros, {}, by_clock(10, there));
  CHECK_EQ(other.import_range(table.export_range(0, kAll)), 2U);
  there += 5;
  const std::vector<void*> slots = run(other, {record("a", 0), record("b", 0)});  // 12 and 8 old
  CHECK_EQ(count_of(slots[0]), 0);
  CHECK_EQ(count_of(slots[1]), 1);
}

TEST(aggregates_forget_too) {
  struct TimedContext : FakeContext {
    using FakeContext::FakeContext;
    [[nodiscard]] std::int64_t watermark() const override { return now; }
    std::int64_t now = kNoWatermark;
  };
  const auto output = std::make_shared<const Schema>(
      std::vector<Field>{field("word", Type::String), field("n", Type::Int64), field("least", Type::String)});
  const std::vector<Aggregate> aggregates = {{AggregateFunction::Count, ""}, {AggregateFunction::Min, "word"}};
  std::shared_ptr<Operator> spec = make_aggregate("a", kSchema, output, kWord, aggregates, Emit::Update, by_event_time(10));
  TimedContext context(spec);
  const std::string longer = name_of(3);
  const std::vector<Record> records = {record(longer, 0), record(longer, 10), record(longer, 21), record("b", 21)};
  CHECK_EQ(context.call(records.data(), 4), 4);
  CHECK_EQ(context.call(records.data() + 2, 2), 2);
  context.now = 32;
  CHECK_EQ(context.call(records.data() + 3, 1), 1);
  const std::vector<std::int64_t> counts = {1, 2, 1, 1, 2, 2, 1};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    CHECK_EQ(context.get<std::int64_t>(i, "n"), counts[i]);
    CHECK(context.text(i, "word") == context.text(i, "least") && context.text(i, "word") == (i == 3 || i > 4 ? "b" : longer));
  }
  CHECK_EQ(spec->state()->size(), 1U);
}

TEST(bad_times_to_live_are_refused) {
  const auto made = [](const TimeToLive& ttl) { KeyedState table(kSchema, kWord, 8, kZeros, {}, ttl); };
  CHECK_THROWS(made(by_event_time(-1)), std::invalid_argument);
  CHECK_THROWS(made(by_event_time(INT64_MAX)), std::invalid_argument);
  CHECK_THROWS(made({.ticks = 1, .field = "nope"}), std::invalid_argument);
  CHECK_THROWS(made({.ticks = 1, .field = "word"}), std::invalid_argument);
}

REL_TEST_MAIN
