#include "rayelastic/state/state_rows.hpp"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/keyless_state.hpp"

using namespace rayelastic;

namespace {

std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }
Field field(std::string name, Type type, bool nullable = false) { return {std::move(name), type, nullable, "", 0, -1}; }

const std::vector<std::string> kWord = {"word"};
constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

void* look_up(KeyedState& table, const std::string& word) {
  const StringView key(word.data(), static_cast<std::uint32_t>(word.size()));
  void* slot = nullptr;
  table.lookup_keys(&key, 1, &slot);
  return slot;
}

// A number, in bytes that nobody but this class knows.
struct Number final : KeylessState {
  std::int64_t number = 0;

  [[nodiscard]] std::uint64_t form() const noexcept override { return 1; }
  void write(StateWriter& writer) const override {
    writer.number(std::uint8_t{7});
    writer.number(~number);
  }
  void read(StateReader& reader, bool restored) override {
    if (reader.number<std::uint8_t>() != 7) throw StateError("no number");
    const auto read = reader.number<std::int64_t>();
    if (restored) number = ~read;
  }
  void write_rows(StateRows& rows) override {
    rows.add();
    rows.set(0, number);
  }
};

// The values of the first column, of whole numbers.
std::vector<std::int64_t> column_of(StateTable& table, std::vector<Field> fields, std::size_t column = 0) {
  StateRows rows(schema_of(std::move(fields)));
  table.write_rows(rows);
  std::vector<std::int64_t> values;
  for (ArrowArray& batch : rows.finish()) {
    const auto* const first = static_cast<const std::int64_t*>(batch.children[column]->buffers[1]);
    values.insert(values.end(), first, first + batch.length);
    batch.release(&batch);
  }
  return values;
}

}  // namespace

TEST(rows_are_of_the_state_whatever_its_bytes_are) {
  Number one;
  Number other;
  one.number = 40;
  other.import_range(one.export_range(0, kAll));
  CHECK(column_of(other, {field("n", Type::Int64, true)}) == std::vector<std::int64_t>{40});
  CHECK_THROWS(column_of(other, {field("n", Type::Float64)}), std::invalid_argument);
  KeyedState table(schema_of({field("word", Type::String)}), kWord, sizeof(std::int64_t), std::vector<std::byte>(sizeof(std::int64_t)));
  for (std::int64_t i = 0; i < 1000; ++i) std::memcpy(look_up(table, "a rather long key, number " + std::to_string(i)), &i, sizeof i);
  table.describe(schema_of({field("count", Type::Int64)}));
  const std::vector<std::int64_t> values = column_of(table, {field("word", Type::String), field("count", Type::Int64)}, 1);
  CHECK_EQ(values.size(), 1000U);
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_EQ(values[i], static_cast<std::int64_t>(i));
}

TEST(older_records_become_wider) {
  const auto older = schema_of({field("count", Type::Int32), field("note", Type::String, true)});
  const auto newer = schema_of({field("note", Type::String, true), field("more", Type::Int64), field("count", Type::Int64)});
  std::vector<std::byte> initial(newer->record_size());
  initial[newer->find("more")->offset] = std::byte{9};
  const std::vector<std::size_t> texts = {older->find("note")->offset};
  KeyedState from(schema_of({field("word", Type::String)}), kWord, older->record_size(), std::vector<std::byte>(older->record_size()),
                  texts);
  from.describe(older);
  const std::vector<std::size_t> newer_texts = {newer->find("note")->offset};
  KeyedState to(schema_of({field("word", Type::String)}), kWord, newer->record_size(), initial, newer_texts);
  to.describe(newer);
  const std::string note = "a note that is longer than twelve bytes";
  for (const char* const word : {"one", "two"}) {
    auto* const state = static_cast<std::byte*>(look_up(from, word));
    const std::int32_t count = word == std::string("one") ? -1 : 2;
    std::memcpy(state + older->find("count")->offset, &count, sizeof count);
    if (count < 0) continue;
    from.keep_text(state + texts[0], note.data(), static_cast<std::uint32_t>(note.size()));
    state[older->validity_offset()] = std::byte{1};
  }
  CHECK_EQ(to.import_older(from), 2U);
  from.remove_range(0, kAll);
  const auto* const one = static_cast<std::byte*>(look_up(to, "one"));
  const auto* const two = static_cast<std::byte*>(look_up(to, "two"));
  CHECK(!newer->is_valid(one, *newer->find("note")) && newer->is_valid(two, *newer->find("note")));
  CHECK(*reinterpret_cast<const StringView*>(two + newer_texts[0]) == StringView(note.data(), static_cast<std::uint32_t>(note.size())));
  std::int64_t numbers[2];
  std::memcpy(numbers, one + newer->find("more")->offset, sizeof numbers);
  CHECK(numbers[0] == 9 && numbers[1] == -1);
  std::memcpy(numbers, two + newer->find("more")->offset, sizeof numbers);
  CHECK(numbers[0] == 9 && numbers[1] == 2);
  CHECK_THROWS(from.import_older(to), std::invalid_argument);
}

REL_TEST_MAIN
