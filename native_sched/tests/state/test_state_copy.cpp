// A copy of a table has what there was when it was begun, whatever the operator does while it is read: seeded histories of one thread, two
// threads, and what windows, joins, patterns and timers keep.
#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/state_copy.hpp"
#include "state/timed_cases.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::size_t kNames = 3000;
constexpr StateMagic kNoMagic = {};
const std::vector<std::size_t> kNote = {8};  // state {count int64, note string}

std::int64_t& count_of(void* state) { return *static_cast<std::int64_t*>(state); }
StringView& note_of(void* state) { return *reinterpret_cast<StringView*>(static_cast<std::byte*>(state) + 8); }
std::string name_of(std::size_t i) { return i % 3 == 0 ? "a rather long key, number " + std::to_string(i) : "k" + std::to_string(i); }

std::unique_ptr<KeyedState> new_table(const TimeToLive& ttl = {}, std::size_t state_size = 24) {
  const std::vector<std::string> keys = {"key"};
  return std::make_unique<KeyedState>(kRows, keys, state_size, std::vector<std::byte>(state_size), kNote, ttl);
}

// Keys that live, with what they have, as bytes.
using Content = std::map<std::string, std::string>;

Content content_of(KeyedState& table, std::size_t state_size = 24) {
  Content content;
  const std::int64_t now = table.now_for_touches();
  table.for_each([&](const StringView& key, std::byte* state) {
    if (!table.is_live(state, now)) return;
    StateWriter writer(kNoMagic, 0, 0);
    table.write_touch(state, writer, now);
    writer.record(state, {state_size, kNote, {}});
    const std::vector<std::byte> bytes = writer.body();
    content[std::string(key.view())] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return content;
}

// What a user's operator does with a table.
class Changes {
 public:
  // Of `count` keys from the first one on.
  Changes(KeyedState& table, std::uint64_t seed, std::size_t first = 0, std::size_t count = kNames)
      : table_(table), random_(seed), first_(first), count_(count) {}

  void change(std::uint64_t times) {
    for (; times > 0; --times) change();
  }
  void change() {
    switch (random_() % 8) {
      case 0:
        remove();
        break;
      case 1:
        if (count_ == kNames && random_() % 20 == 0) (void)table_.remove_range(random_(), UINT64_MAX);
        break;
      default:
        touch();
    }
  }

 private:
  void touch() {
    std::vector<std::string> names(1 + random_() % 70);
    std::vector<Row> rows;
    for (std::string& name : names) {
      name = name_of(any());
      rows.push_back({view(name), time_++, 0, view(name)});
    }
    std::vector<void*> slots(rows.size());
    table_.begin_run(time_ - 5, rows.size());
    table_.lookup(reinterpret_cast<const std::byte*>(rows.data()), rows.size(), slots.data());
    for (void* const slot : slots) {
      count_of(slot) += static_cast<std::int64_t>(random_() % 100);
      const std::string note(random_() % 40, static_cast<char>('a' + random_() % 26));
      if (random_() % 2 == 0) table_.keep_text(&note_of(slot), note.data(), static_cast<std::uint32_t>(note.size()));
    }
  }
  void remove() {
    const std::string name = name_of(any());
    if (void* const state = table_.find(view(name)); state != nullptr) table_.remove(state);
  }

  std::size_t any() { return first_ + random_() % count_; }

  KeyedState& table_;
  std::mt19937_64 random_;
  std::size_t first_;
  std::size_t count_;
  std::int64_t time_ = 0;
};

// As of a table whose keys take long to write.
std::shared_ptr<StateCopy> begin_copy_one_by_one(KeyedState& table) {
  static constexpr StateMagic kMagic = {'R', 'E', 'L', 'K', 'E', 'Y', 'S', '1'};
  return table.begin_copy({.magic = &kMagic,
                           .layout = table.layout(),
                           .write =
                               [](const StringView& key, const std::byte* state, StateWriter& writer) {
                                 writer.key(key);
                                 writer.record(state, {24, kNote, {}});
                               },
                           .rest = [] {}});
}

// Imports what is left of a copy.
void take_all(StateCopy& copy, StateTable& into, std::size_t max_bytes) {
  while (const auto chunk = copy.next_chunk(max_bytes)) (void)into.import_range(chunk->bytes);
}

// `clock`: what the time to live goes by, if it does; it goes on while the copy is read.
void interleaved(std::uint64_t seed, const TimeToLive& ttl, std::int64_t* clock = nullptr) {
  std::int64_t none = 0;
  std::int64_t& now = clock == nullptr ? none : *clock;
  std::mt19937_64 random(seed);
  const auto table = new_table(ttl);
  Changes changes(*table, seed);
  for (int copies = 0; copies < 3; ++copies) {
    changes.change(random() % 300);
    const Content expected = content_of(*table);
    const std::shared_ptr<StateCopy> copy = table->begin_copy();
    const std::int64_t begun = now;
    const auto moved = new_table(ttl);
    for (bool more = true; more;) {
      now += 50;
      changes.change(random() % 8);
      const auto chunk = copy->next_chunk(1 + random() % 20'000);
      more = chunk.has_value();
      const std::int64_t later = std::exchange(now, begun);  // imported when it was begun: then touches are what they were
      if (more) (void)moved->import_range(chunk->bytes);
      now = later;
    }
    now = begun;
    CHECK(content_of(*moved) == expected);
  }
}

}  // namespace

TEST(a_copy_has_what_there_was_when_it_was_begun) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) interleaved(seed, {});
}

TEST(a_copy_has_touches_as_they_were) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) interleaved(seed, {.ticks = 3000, .field = "at"});
  std::int64_t now = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) interleaved(seed, {.ticks = 3000, .clock = [&now] { return now; }}, &now);
}

// As the table of Python values does, which takes a value out of its state to let go of it later.
TEST(what_is_forgotten_is_kept_before_its_owner_empties_it) {
  const auto table = new_table({.ticks = 3000, .field = "at"});
  Changes(*table, 1).change(100);
  const Content expected = content_of(*table);
  const std::shared_ptr<StateCopy> copy = table->begin_copy();
  std::size_t dropped = 0;
  table->begin_run(1'000'000, table->size(), [&](void* state) {
    count_of(state) = -1;
    ++dropped;
  });
  CHECK(dropped == expected.size() && dropped > 100);
  const auto moved = new_table({.ticks = 3000, .field = "at"});
  take_all(*copy, *moved, 1 << 14);
  CHECK(content_of(*moved) == expected);
}

TEST(states_larger_than_a_block_are_copied) {
  constexpr std::size_t kLarge = 100'000;  // bytes
  const auto table = new_table({}, kLarge);
  for (std::size_t i = 0; i < 200; ++i) {
    const std::string name = name_of(i);
    const StringView key = view(name);
    void* slot = nullptr;
    table->lookup_keys(&key, 1, &slot);
    count_of(slot) = static_cast<std::int64_t>(i);
  }
  const Content expected = content_of(*table, kLarge);
  const std::shared_ptr<StateCopy> copy = table->begin_copy();
  const auto moved = new_table({}, kLarge);
  for (std::size_t i = 0; i < 200; i += 3) {
    const std::string name = name_of(i);
    const StringView key = view(name);
    void* slot = nullptr;
    table->lookup_keys(&key, 1, &slot);
    count_of(slot) += 1000;
    if (i % 2 == 0) {
      const auto chunk = copy->next_chunk(1);
      if (chunk.has_value()) (void)moved->import_range(chunk->bytes);
    }
  }
  take_all(*copy, *moved, 1 << 20);
  CHECK(content_of(*moved, kLarge) == expected);
}

// Of segments that haven't changed since an earlier copy what that one gave is kept, and together they are what there is.
TEST(segments_that_have_not_changed_are_skipped) {
  constexpr std::size_t kWide = 8000;  // bytes: some hundred keys a segment
  constexpr std::size_t kFew = 2000;
  struct Written {
    std::uint64_t number;
    std::vector<std::vector<std::byte>> chunks;
  };
  std::size_t skipped = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    std::mt19937_64 random(seed);
    const auto table = new_table({}, kWide);
    for (std::size_t key = 0; key < kFew; ++key) Changes(*table, seed, key, 1).change(1);
    std::map<std::size_t, Written> kept;
    for (std::uint64_t round = 0; round < 8; ++round) {
      Changes changes(*table, 100 * seed + round, random() % kFew, 40);
      changes.change(random() % 5);
      const Content expected = content_of(*table, kWide);
      const std::shared_ptr<StateCopy> copy = table->begin_copy();
      const std::vector<std::uint64_t> changed_after = copy->changed_after();
      for (std::size_t segment = 0; segment < changed_after.size(); ++segment) {
        const auto found = kept.find(segment);
        if (found == kept.end()) continue;
        if (changed_after[segment] < found->second.number) {
          copy->skip(segment);
          ++skipped;
        } else {
          kept.erase(found);
        }
      }
      changes.change(3);
      while (const auto chunk = copy->next_chunk(1 << 16)) {
        Written& written = kept[chunk->segment];
        written.number = copy->number();
        written.chunks.push_back(chunk->bytes);
        changes.change(random() % 2);
      }
      const auto moved = new_table({}, kWide);
      for (const auto& [segment, written] : kept) {
        for (const std::vector<std::byte>& chunk : written.chunks) (void)moved->import_range(chunk);
      }
      CHECK(content_of(*moved, kWide) == expected);
    }
  }
  CHECK(skipped > 20);
}

// How old a key is, is told as of the copy.
TEST(keys_that_age_by_the_clock_are_given_each_time) {
  for (const bool ages : {true, false}) {
    const auto table = new_table(ages ? TimeToLive{.ticks = 3000, .clock = [] { return std::int64_t{7}; }} : TimeToLive{});
    Changes(*table, 1).change(100);
    (void)table->begin_copy();
    const std::shared_ptr<StateCopy> copy = table->begin_copy();
    CHECK_EQ(copy->number(), 2U);
    CHECK(copy->changed_after() == std::vector<std::uint64_t>{ages ? 2U : 0U});
  }
}

TEST(an_empty_table_gives_one_chunk) {
  const auto table = new_table();
  const std::shared_ptr<StateCopy> copy = table->begin_copy();
  Changes(*table, 1).change();
  const auto first = copy->next_chunk(1 << 20);
  CHECK(first.has_value());
  CHECK_EQ(new_table()->import_range(first->bytes), 0U);
  CHECK(!copy->next_chunk(1 << 20).has_value());
}

TEST(a_copy_is_read_while_the_operator_goes_on) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const auto table = new_table();
    Changes changes(*table, seed);
    changes.change(2000);
    for (int copies = 0; copies < 10; ++copies) {
      const Content expected = content_of(*table);
      const std::shared_ptr<StateCopy> copy = copies % 2 == 0 ? table->begin_copy() : begin_copy_one_by_one(*table);
      std::atomic<bool> read{false};
      Content found;
      std::thread reader([&] {
        const auto moved = new_table();
        take_all(*copy, *moved, 1 << 14);
        found = content_of(*moved);
        read.store(true);
      });
      do changes.change(10);
      while (!read.load());
      reader.join();
      CHECK(found == expected);
    }
  }
}

// Whoever wants another copy, or none, doesn't wait for the reader of the last one, and that one touches nothing any more.
TEST(a_copy_that_is_given_up_ends_its_reader) {
  const auto table = new_table();
  Changes changes(*table, 5);
  changes.change(2000);
  int refused = 0;  // others had read all before
  for (int copies = 0; copies < 50; ++copies) {
    const std::shared_ptr<StateCopy> copy = table->begin_copy();
    std::atomic<bool> begun{false};
    std::atomic<bool> given_up{copies % 4 >= 2};  // it is caught in the middle, or asks for more behind that
    std::thread reader([&] {
      try {
        while (copy->next_chunk(1).has_value()) {
          begun.store(true);
          while (!given_up.load()) std::this_thread::yield();
        }
      } catch (const StateError&) {
        ++refused;
      }
    });
    for (int changed = 0; !begun.load();) {  // few, however late it begins: what is changed has been copied by then
      if (changed++ < 10) changes.change();
      std::this_thread::yield();
    }
    if (copies % 2 == 0) copy->abandon();
    const Content expected = content_of(*table);
    const std::shared_ptr<StateCopy> next = table->begin_copy();
    given_up.store(true);
    changes.change(100);
    reader.join();
    const auto moved = new_table();
    take_all(*next, *moved, 1 << 20);
    CHECK(content_of(*moved) == expected);
  }
  CHECK(refused >= 25);
}

TEST(copies_of_what_goes_by_time_go_on_as_they_would_have) {
  int copied = 0;
  std::vector<Case> cases = kCases;
  cases.insert(cases.end(), kTimers.begin(), kTimers.end());
  for (const auto& [make, ports] : cases) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      const Script script(seed, 200, ports);
      std::mt19937_64 random(seed);
      const std::size_t at = seed % 4 == 0 ? script.steps.size() : 20 + random() % 150;  // the end of all changes keys as well
      const std::shared_ptr<Operator> spec = make();
      std::vector<std::string> log;
      for (std::size_t i = 0; i < at; ++i) CHECK(apply(spec, script.steps[i], log) >= 0);
      const std::shared_ptr<Operator> copy_of = make();
      const std::shared_ptr<StateCopy> copy = spec->state()->begin_copy();
      if (copy == nullptr) continue;  // no keys
      ++copied;
      log.clear();
      for (std::size_t i = at; i < script.steps.size(); ++i) {
        CHECK(apply(spec, script.steps[i], log) >= 0);
        if (random() % 4 != 0) continue;
        const auto chunk = copy->next_chunk(1 + random() % 300);
        if (chunk.has_value()) (void)copy_of->state()->import_range(chunk->bytes);
      }
      finish(spec, log);
      take_all(*copy, *copy_of->state(), 300);
      std::vector<std::string> again;
      for (std::size_t i = at; i < script.steps.size(); ++i) CHECK(apply(copy_of, script.steps[i], again) >= 0);
      finish(copy_of, again);
      std::ranges::sort(log);  // at the end windows by count give what is left in the order in which keys came
      std::ranges::sort(again);
      CHECK(log == again);
    }
  }
  CHECK(copied > 400);
}

REL_TEST_MAIN
