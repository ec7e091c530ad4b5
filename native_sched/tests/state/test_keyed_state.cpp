#include "rayelastic/state/keyed_state.hpp"

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <unordered_map>

#include "check.hpp"
#include "rayelastic/record/hash.hpp"

using namespace rayelastic;

namespace {

std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }
Field field(std::string name, Type type, bool nullable = false) { return {std::move(name), type, nullable, "", 0, -1}; }

StringView view(const std::string& text) { return {text.data(), static_cast<std::uint32_t>(text.size())}; }

const std::vector<std::string> kWord = {"word"};
const std::vector<std::byte> kZeros(64);
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

std::int64_t& count_of(void* state) { return *static_cast<std::int64_t*>(state); }

void* look_up(KeyedState& table, const std::string& word) {
  const StringView key = view(word);
  void* slot = nullptr;
  table.lookup_keys(&key, 1, &slot);
  return slot;
}

KeyedState counts() { return KeyedState(schema_of({field("word", Type::String)}), kWord, 8, kZeros); }

// State {count int64, note string}.
KeyedState notes(std::span<const std::byte> initial = kZeros) {
  const std::vector<std::size_t> texts = {8};
  return KeyedState(schema_of({field("word", Type::String)}), kWord, 24, initial, texts);
}
StringView& note_of(void* state) { return *reinterpret_cast<StringView*>(static_cast<std::byte*>(state) + 8); }
void set_note(KeyedState& table, void* state, const std::string& text) {
  table.keep_text(&note_of(state), text.data(), static_cast<std::uint32_t>(text.size()));
}

std::string name_of(std::size_t i) { return i % 3 == 0 ? "a rather long key, number " + std::to_string(i) : "k" + std::to_string(i); }

}  // namespace

TEST(single_keys_are_canonical) {
  const auto schema = schema_of({field("a", Type::Int32), field("t", Type::String, true), field("f", Type::Float64, true)});
  std::vector<std::byte> records(schema->record_size() * 4);
  const auto put = [&](std::size_t i, const std::string& name, auto value) {
    std::memcpy(records.data() + i * schema->record_size() + schema->find(name)->offset, &value, sizeof value);
    const std::int32_t bit = schema->find(name)->validity;
    if (bit >= 0) records[i * schema->record_size() + schema->validity_offset()] |= static_cast<std::byte>(1 << bit);
  };
  StringView keys[4];
  const auto extract = [&](const std::string& name) {
    const std::vector<std::string> names = {name};
    KeyExtractor(schema, names).extract(records.data(), 4, keys);
  };
  put(0, "a", std::int32_t{0});
  put(1, "a", std::int32_t{-7});
  extract("a");
  CHECK_EQ(keys[0].length, 4U);
  CHECK(!(keys[0] == keys[1]) && keys[0] == keys[2]);
  put(0, "t", view(""));  // record 1 is null
  put(2, "t", view("text"));
  extract("t");
  CHECK(keys[0] == view("") && keys[2] == view("text"));
  CHECK(is_null_key(keys[1]) && is_null_key(keys[3]) && !(keys[0] == keys[1]) && hash_of(keys[0]) != hash_of(keys[1]));
  put(0, "f", 0.0);
  put(1, "f", -0.0);
  put(2, "f", std::nan("1"));
  extract("f");
  CHECK(keys[0] == keys[1] && !(keys[0] == keys[2]) && is_null_key(keys[3]) && !(keys[0] == keys[3]));
  put(0, "f", -std::nan("7"));
  const StringView nan = keys[2];
  extract("f");
  CHECK(keys[0] == nan);
  const std::vector<std::string> unknown = {"nope"};
  CHECK_THROWS(KeyExtractor(schema, unknown), std::invalid_argument);
}

TEST(keys_of_numbers_are_their_bytes) {
  const char bytes[] = "0123456789abcdef";
  for (const Type type :
       {Type::Int8, Type::Int16, Type::Float16, Type::UInt32, Type::Float32, Type::Int64, Type::Float64, Type::Decimal128}) {
    for (const bool nullable : {false, true}) {
      const auto schema = schema_of({field("before", Type::Int64), field("n", type, nullable)});
      std::vector<std::byte> records(schema->record_size() * 2);  // the second is null, where it can be
      std::memcpy(records.data() + schema->find("n")->offset, bytes, size_of(type));
      if (nullable) records[schema->validity_offset()] = std::byte{1};
      const std::vector<std::string> names = {"n"};
      StringView keys[2];
      KeyExtractor(schema, names).extract(records.data(), 2, keys);
      CHECK(keys[0] == StringView(bytes, static_cast<std::uint32_t>(size_of(type))));
      CHECK_EQ(is_null_key(keys[1]), nullable);
    }
  }
}

TEST(keys_of_several_fields_restore) {
  const auto schema = schema_of({field("a", Type::String, true), field("n", Type::Int16, true), field("b", Type::String)});
  const std::vector<std::string> names = {"b", "n", "a"};
  KeyExtractor extractor(schema, names);
  const std::string longer = "more than twelve bytes here";
  struct Row {
    std::string a, b;
    bool has_a;
    bool has_n;
  };
  const std::vector<Row> rows = {{"", "", true, true},   {"", "", false, true},    {"", "", true, false},    {"x", "y", true, true},
                                 {"y", "x", true, true}, {longer, "", true, true}, {"", longer, true, true}, {"xy", "", true, true}};
  const std::size_t stride = schema->record_size();
  std::vector<std::byte> records(rows.size() * stride);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::byte* record = records.data() + i * stride;
    const StringView a = view(rows[i].a), b = view(rows[i].b);
    if (rows[i].has_a) std::memcpy(record + schema->find("a")->offset, &a, sizeof a);
    std::memcpy(record + schema->find("b")->offset, &b, sizeof b);
    record[schema->validity_offset()] = static_cast<std::byte>((rows[i].has_a ? 1 : 0) | (rows[i].has_n ? 2 : 0));
  }
  std::vector<StringView> keys(rows.size());
  extractor.extract(records.data(), rows.size(), keys.data());
  std::vector<const Field*> targets;
  for (const std::string& name : names) targets.push_back(schema->find(name));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t k = 0; k < rows.size(); ++k) CHECK((keys[i] == keys[k]) == (i == k));
    std::vector<std::byte> record(stride);
    extractor.restore(keys[i], *schema, targets, record.data());
    CHECK_EQ(schema->is_valid(record.data(), *targets[2]), rows[i].has_a);
    CHECK_EQ(schema->is_valid(record.data(), *targets[1]), rows[i].has_n);
    CHECK(reinterpret_cast<StringView*>(record.data() + targets[0]->offset)->view() == rows[i].b);
    CHECK(reinterpret_cast<StringView*>(record.data() + targets[2]->offset)->view() == rows[i].a);
  }
}

TEST(counts_as_a_map_does_and_keeps_addresses) {
  KeyedState table = counts();
  std::unordered_map<std::string, std::int64_t> expected;
  std::unordered_map<std::string, void*> addresses;
  std::mt19937_64 random(11);
  for (int round = 0; round < 400; ++round) {
    std::vector<std::string> words(1 + random() % 300);
    std::vector<StringView> records;
    for (std::string& word : words) {
      word = name_of(random() % 20'000);
      records.push_back(view(word));
    }
    std::vector<void*> slots(words.size());
    table.lookup(reinterpret_cast<const std::byte*>(records.data()), records.size(), slots.data());
    for (std::size_t i = 0; i < words.size(); ++i) {
      ++count_of(slots[i]);
      ++expected[words[i]];
      CHECK(KeyedState::key_of(slots[i]) == records[i]);
      CHECK(addresses.try_emplace(words[i], slots[i]).first->second == slots[i]);
    }
  }
  CHECK_EQ(table.size(), expected.size());
  for (const auto& [word, count] : expected) CHECK_EQ(count_of(table.find(view(word))), count);
  CHECK(table.find(view("not there")) == nullptr);
  CHECK(table.bytes() > 32 * table.size());
}

TEST(keys_come_in_the_order_in_which_they_were_first_seen) {
  KeyedState table = counts();
  for (std::size_t i = 0; i < 5000; ++i) count_of(look_up(table, name_of(i * 7919 % 5000))) = static_cast<std::int64_t>(i);
  std::int64_t next = 0;
  table.for_each([&next](const StringView&, std::byte* state) { CHECK_EQ(count_of(state), next++); });
  CHECK_EQ(next, 5000);
}

TEST(new_keys_get_the_initial_state) {
  std::vector<std::byte> initial(24 + 40);
  const std::int64_t start = 42;
  std::memcpy(initial.data(), &start, 8);
  const std::string text = "a default that isn't inline, forty bytes";
  std::memcpy(initial.data() + 24, text.data(), 40);
  StringView where = view(text);
  const std::uint64_t place = 24;
  std::memcpy(where.rest, &place, 8);
  std::memcpy(initial.data() + 8, &where, 16);
  KeyedState table = notes(initial);
  void* first = look_up(table, "first");
  void* second = look_up(table, "second");
  CHECK_EQ(count_of(first), 42);
  CHECK(note_of(first).view() == text && note_of(second).view() == text);
  set_note(table, first, std::string(30, 'z'));
  CHECK(note_of(first).view() == std::string(30, 'z') && note_of(second).view() == text);
  const std::vector<std::byte> short_initial(8);
  CHECK_THROWS(notes(short_initial), std::invalid_argument);
  initial.resize(24 + 39);
  CHECK_THROWS(notes(initial), std::invalid_argument);
}

TEST(texts_reuse_their_room) {
  KeyedState table = notes();
  std::mt19937_64 random(3);
  std::vector<std::string> expected(50);
  for (std::size_t i = 0; i < expected.size(); ++i) (void)look_up(table, name_of(i));
  std::size_t settled = 0;
  for (int round = 0; round < 100'000; ++round) {
    const std::size_t i = random() % expected.size();
    void* state = table.find(view(name_of(i)));
    CHECK(note_of(state).view() == expected[i]);
    expected[i] = std::string(random() % 200, static_cast<char>('a' + random() % 26));
    set_note(table, state, expected[i]);
    if (round == 20'000) settled = table.bytes();
  }
  CHECK(table.bytes() <= settled + 64 * 1024);
}

TEST(a_text_may_become_a_part_of_itself) {
  KeyedState table = notes();
  void* state = look_up(table, "k");
  set_note(table, state, "0123456789abcdefghijklmnopqrstuvwxyz");
  table.keep_text(&note_of(state), note_of(state).data() + 2, 30);
  CHECK(note_of(state).view() == "23456789abcdefghijklmnopqrstuv");
  table.keep_text(&note_of(state), note_of(state).data() + 1, 12);
  CHECK(note_of(state).view() == "3456789abcde");
  table.keep_text(&note_of(state), note_of(state).data() + 1, 3);
  CHECK(note_of(state).view() == "456");
  const std::string large(100'000, 'L');
  set_note(table, state, large);
  CHECK(note_of(state).view() == large);
}

TEST(ranges_move_between_tables) {
  KeyedState whole = notes();
  for (std::size_t i = 0; i < 3000; ++i) {
    void* state = look_up(whole, name_of(i));
    count_of(state) = static_cast<std::int64_t>(i);
    set_note(whole, state, i % 2 == 0 ? "short" : "a longer note for key " + std::to_string(i));
  }
  const std::uint64_t middle = kAll / 3;
  const std::vector<std::byte> low = whole.export_range(0, middle);
  KeyedState part = notes();
  const std::size_t moved = part.import_range(low);
  CHECK(moved > 500 && moved < 1500);
  CHECK_EQ(whole.remove_range(0, middle), moved);
  CHECK_EQ(whole.size() + part.size(), 3000U);
  for (std::size_t i = 0; i < 3000; ++i) {
    KeyedState& home = hash_of(view(name_of(i))) <= middle ? part : whole;
    KeyedState& other = &home == &part ? whole : part;
    void* state = home.find(view(name_of(i)));
    CHECK(state != nullptr && other.find(view(name_of(i))) == nullptr);
    CHECK_EQ(count_of(state), static_cast<std::int64_t>(i));
    CHECK(note_of(state).view() == (i % 2 == 0 ? "short" : "a longer note for key " + std::to_string(i)));
  }
  const std::size_t bytes = whole.bytes();
  CHECK_EQ(whole.import_range(part.export_range(0, kAll)), moved);  // and home again, into the places that became free
  CHECK_EQ(whole.size(), 3000U);
  CHECK(whole.bytes() <= bytes + 64 * 1024);
  CHECK_THROWS(whole.import_range(low), StateError);
  CHECK_EQ(whole.size(), 3000U);
}

TEST(keys_of_several_ranges_leave_in_chunks) {
  constexpr std::size_t kKeys = 200'000;
  KeyedState whole = counts();
  for (std::size_t i = 0; i < kKeys; ++i) count_of(look_up(whole, name_of(i))) = static_cast<std::int64_t>(i);
  const std::uint64_t part = kAll / 16;
  const HashRanges some({{6 * part, 7 * part}, {0, part}, {kAll - part, kAll}});
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < kKeys; ++i) wanted += some.contains(hash_of(view(name_of(i)))) ? 1 : 0;
  CHECK(wanted > kKeys / 8 && wanted < kKeys / 4);
  KeyedState moved = counts();
  const KeySelection keys = whole.select(some);
  CHECK(keys.slots.size() >= wanted && keys.slots.size() < wanted + 10);  // by half of each hash
  std::uint64_t at = 0;
  std::size_t chunks = 0;
  for (; at != 0 || chunks == 0; ++chunks) {
    const std::vector<std::byte> chunk = whole.export_chunk(keys, at, 1 << 14);
    CHECK(chunk.size() < (1 << 14) + 100);
    (void)moved.import_range(chunk);
  }
  CHECK(chunks > 10);
  CHECK_EQ(moved.size(), wanted);
  std::size_t removed = 0;
  for (std::size_t calls = 0; at != 0 || calls == 0; ++calls) {
    const std::size_t now = whole.remove_chunk(keys, at, 1000);
    CHECK(now <= 1000);
    removed += now;
  }
  CHECK_EQ(removed, wanted);
  CHECK_EQ(whole.size(), kKeys - wanted);
  CHECK_EQ(whole.remove_chunk(keys, at, kAll), 0U);
  for (std::size_t i = 0; i < kKeys; ++i) {
    const bool gone = some.contains(hash_of(view(name_of(i))));
    CHECK_EQ(whole.find(view(name_of(i))) == nullptr, gone);
    CHECK_EQ(count_of((gone ? moved : whole).find(view(name_of(i)))), static_cast<std::int64_t>(i));
  }
  CHECK_THROWS(HashRanges({{5, 4}}), std::invalid_argument);
  CHECK_THROWS(HashRanges({{0, 4}, {4, 9}}), std::invalid_argument);
  CHECK(!some.contains(part + 1) && some.overlaps({part + 1, kAll}) && !some.overlaps({part + 1, 2 * part}));
  CHECK(!HashRanges(std::vector<HashRange>()).contains(0));
  CHECK(HashRanges().has_all() && !some.has_all());
}

// The operator goes on with other keys, and the table grows.
TEST(keys_that_rest_are_exported_while_others_come) {
  constexpr std::size_t kKeys = 20'000;
  const HashRanges resting(0, kAll / 2);
  const auto rests = [&resting](std::size_t i) { return resting.contains(hash_of(view(name_of(i)))); };
  KeyedState whole = counts();
  CHECK(whole.exports_aside());
  for (std::size_t i = 0; i < kKeys; ++i) count_of(look_up(whole, name_of(i))) = static_cast<std::int64_t>(i);
  KeySelection keys{.of = resting};
  std::uint64_t at = 0;
  do whole.select_chunk(keys, at, 1000);
  while (at != 0);
  KeyedState moved = counts();
  std::atomic<bool> begun = false;
  std::thread running([&] {
    for (std::size_t i = 0; i < 10 * kKeys; ++i) {
      if (rests(i)) continue;
      count_of(look_up(whole, name_of(i))) += 1;
      if (i == kKeys) begun = true;
    }
    begun = true;
  });
  while (!begun) std::this_thread::yield();
  do (void)moved.import_range(whole.export_chunk(keys, at, 1 << 14));
  while (at != 0);
  running.join();
  std::size_t wanted = 0;
  for (std::size_t i = 0; i < kKeys; ++i) {
    if (!rests(i)) continue;
    ++wanted;
    CHECK_EQ(count_of(moved.find(view(name_of(i)))), static_cast<std::int64_t>(i));
  }
  CHECK_EQ(moved.size(), wanted);
  CHECK_EQ(whole.remove_chunk(keys, at, kAll), wanted);
}

TEST(damaged_exports_are_refused_and_change_nothing) {
  KeyedState table = notes();
  for (std::size_t i = 0; i < 20; ++i) set_note(table, look_up(table, name_of(i)), "a note of more than twelve bytes");
  const std::vector<std::byte> good = table.export_range(0, kAll);
  for (std::size_t length = 0; length < good.size(); ++length) {
    KeyedState fresh = notes();
    CHECK_THROWS(fresh.import_range(std::span(good).first(length)), StateError);
    CHECK_EQ(fresh.size(), 0U);
  }
  std::mt19937_64 random(5);
  for (int round = 0; round < 3000; ++round) {  // a changed byte is refused or is another valid export, never more
    std::vector<std::byte> bad = good;
    for (std::uint64_t changes = 1 + random() % 3; changes > 0; --changes) bad[random() % bad.size()] = static_cast<std::byte>(random());
    KeyedState fresh = notes();
    try {
      CHECK_EQ(fresh.import_range(bad), 20U);
      fresh.for_each([](const StringView& key, std::byte* state) { (void)hash_of(key), (void)hash_of(note_of(state)); });
    } catch (const StateError&) {
      CHECK_EQ(fresh.size(), 0U);
    }
  }
  std::vector<std::byte> twice = good;  // the same key twice
  KeyedState one = counts();
  (void)look_up(one, "k");
  twice = one.export_range(0, kAll);
  const std::vector<std::byte> entry(twice.begin() + 32, twice.end());
  twice.insert(twice.end(), entry.begin(), entry.end());
  const std::uint64_t header[2] = {2, 2 * entry.size()};
  std::memcpy(twice.data() + 16, header, sizeof header);
  KeyedState fresh = counts();
  CHECK_THROWS(fresh.import_range(twice), StateError);
  CHECK_EQ(fresh.size(), 0U);
  KeyedState other = notes();
  CHECK_THROWS(other.import_range(one.export_range(0, kAll)), StateError);  // another state record
}

TEST(keys_of_another_layout_are_refused) {
  const auto schema = schema_of({field("a", Type::String, true), field("n", Type::Int16)});
  const std::vector<std::string> names = {"a", "n"};
  KeyedState table(schema, names, 8, kZeros);
  std::vector<std::byte> record(schema->record_size());
  void* slot = nullptr;
  table.lookup(record.data(), 1, &slot);
  std::vector<std::byte> bytes = table.export_range(0, kAll);
  KeyedState fresh(schema, names, 8, kZeros);
  CHECK_EQ(fresh.import_range(bytes), 1U);
  bytes[32 + 5] = std::byte{1};  // the null text is present now, with a length that reaches beyond the key
  KeyedState third(schema, names, 8, kZeros);
  CHECK_THROWS(third.import_range(bytes), StateError);
}

TEST(without_key_fields_there_is_one_group) {
  KeyedState table(schema_of({field("n", Type::Int64)}), {}, 8, kZeros);
  const std::int64_t records[3] = {1, 2, 3};
  void* slots[3];
  table.lookup(reinterpret_cast<const std::byte*>(records), 3, slots);
  CHECK(slots[0] == slots[1] && slots[1] == slots[2]);
  CHECK_EQ(table.size(), 1U);
}

REL_TEST_MAIN

namespace {

// Keys that come, are looked up and go at random while the index grows again and again; the table beside what a plain map says.
void compare_with_a_map(unsigned seed, std::size_t operations, std::size_t keys, double removed) {
  KeyedState table = counts();
  std::unordered_map<std::string, std::int64_t> expected;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> chance(0.0, 1.0);
  for (std::size_t step = 0; step < operations; ++step) {
    const std::string name = name_of(random() % (keys * (step + 1) / operations + 1));
    if (chance(random) < removed) {
      const StringView key = view(name);
      void* const state = table.find(key);
      CHECK((state != nullptr) == expected.contains(name));
      if (state != nullptr) {
        CHECK_EQ(count_of(state), expected[name]);
        table.remove(state);
        CHECK(table.find(key) == nullptr);
        expected.erase(name);
      }
    } else {
      ++count_of(look_up(table, name));
      ++expected[name];
    }
    CHECK_EQ(table.size(), expected.size());
  }
  std::size_t found = 0;
  for (const auto& [name, count] : expected) {
    void* const state = table.find(view(name));
    CHECK(state != nullptr);
    CHECK_EQ(count_of(state), count);
    ++found;
  }
  std::size_t listed = 0;
  table.for_each([&](const StringView&, std::byte*) { ++listed; });
  CHECK_EQ(listed, found);
}

}  // namespace

TEST(keys_come_and_go_while_the_index_grows_in_steps) {
  for (unsigned seed = 1; seed <= 20; ++seed) compare_with_a_map(seed, 40'000, 30'000, 0.05 * (seed % 8));
  compare_with_a_map(99, 600'000, 500'000, 0.1);  // tables that are mapped, and returned in parts
}

TEST(a_growing_index_moves_a_few_slots_at_each_lookup) {
  KeyIndex index;
  const auto hash = [](std::uint32_t number) { return std::uint64_t{number} * 0x9E3779B97F4A7C15U; };
  constexpr std::uint32_t kSlots = 3 * 16 * 1024;
  index.grow(kSlots, 0);
  for (std::uint32_t number = 0; number < kSlots; ++number) index.place(hash(number), number);
  CHECK(!index.has_room_for(3 * kSlots));
  index.grow(3 * kSlots, kSlots);
  std::size_t steps = 0;
  for (; index.is_growing(); ++steps) {
    const auto looked_up = static_cast<std::uint32_t>(steps * 7919 % kSlots);
    CHECK_EQ(index.find(hash(looked_up), [&](std::uint32_t number) { return number == looked_up; }), looked_up);
    std::size_t visited = 0;
    const auto kept = [&](std::uint32_t) { return ++visited > 0; };
    index.advance(64, kept, hash);
    CHECK(visited <= 64);
  }
  CHECK_EQ(steps, std::size_t{kSlots / 64});
  const std::size_t both = index.bytes();
  while (index.is_behind()) index.advance(64, [](std::uint32_t) { return true; }, hash);
  CHECK(index.bytes() < both);
  for (std::uint32_t number = 0; number < kSlots; ++number)
    CHECK_EQ(index.find(hash(number), [&](std::uint32_t other) { return other == number; }), number);
}
