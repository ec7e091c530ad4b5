#include "rayelastic/operators/aggregate/aggregate.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "aggregated_rows.hpp"
#include "check.hpp"
#include "fake_context.hpp"

using namespace rayelastic;

namespace {

constexpr auto kNaN = std::numeric_limits<double>::quiet_NaN();

const std::shared_ptr<const Schema> kEverything = schema_of(
    {field("word", Type::String), field("count", Type::Int64), field("notes", Type::Int64), field("sum", Type::Int64),
     field("total", Type::Float64, true), field("min", Type::Int64), field("max", Type::Float64, true), field("mean", Type::Float64, true),
     field("first", Type::String, true), field("last", Type::String, true), field("least", Type::String, true)});
const std::vector<Aggregate> kAll = {{AggregateFunction::Count, ""},  {AggregateFunction::Count, "note"}, {AggregateFunction::Sum, "n"},
                                     {AggregateFunction::Sum, "x"},   {AggregateFunction::Min, "n"},      {AggregateFunction::Max, "x"},
                                     {AggregateFunction::Mean, "x"},  {AggregateFunction::First, "note"}, {AggregateFunction::Last, "note"},
                                     {AggregateFunction::Min, "note"}};

}  // namespace

TEST(counts_words_in_the_order_of_the_keys) {
  const std::shared_ptr<Operator> spec = make_aggregate("count", kInput, kCounts, {"word"}, kCount, Emit::Final);
  CHECK_EQ(spec->flags(), static_cast<std::uint32_t>(REL_ON_FINISH));
  FakeContext context(spec, 16);
  std::mt19937_64 random(9);
  std::vector<std::string> words;
  std::map<std::string, std::int64_t> expected;
  std::vector<std::string> order;
  for (std::size_t i = 0; i < 5000; ++i) {
    words.push_back((i % 2 == 0 ? "word " : "a word of more than twelve bytes ") + std::to_string(random() % 500));
    if (expected[words.back()]++ == 0) order.push_back(words.back());
  }
  for (std::size_t i = 0; i < words.size(); i += 100) {
    std::vector<Row> run;
    for (std::size_t k = i; k < i + 100; ++k) run.push_back(row(words[k], 0));
    CHECK_EQ(context.call(run.data(), 100), 0);
  }
  CHECK(context.call(nullptr, 0) >= 0);
  CHECK_EQ(context.size(), order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    CHECK_EQ(context.text(i, "word"), order[i]);
    CHECK_EQ(context.get<std::int64_t>(i, "count"), expected[order[i]]);
  }
  CHECK_EQ(table_of_aggregate(*spec).size(), order.size());
}

TEST(an_aggregate_of_runs_keeps_nothing_between_them) {
  const std::shared_ptr<Operator> spec = make_aggregate("part", kInput, kEverything, {"word"}, kAll, Emit::Run);
  CHECK_EQ(spec->flags(), 0U);
  CHECK(spec->state() == nullptr);  // nothing to export, so nothing that a checkpoint would miss
  FakeContext context(spec, 2);     // fewer than the keys of a run: it flushes
  const std::string note = "a note that is too long to be inline";
  const std::vector<std::vector<std::string>> runs = {
      {"a", "b", "a", "c"}, {"c"}, {"d", "c", "d", "a long word, beyond twelve bytes", "b"}};
  for (const std::vector<std::string>& run : runs) {
    std::vector<Row> rows;
    for (const std::string& word : run) rows.push_back(row(word, 7, 1.5, note));
    CHECK(context.call(rows.data(), static_cast<std::int64_t>(rows.size())) >= 0);
    CHECK_EQ(table_of_aggregate(*spec).size(), 0U);
  }
  const std::vector<std::pair<std::string, std::int64_t>> expected = {
      // in the order in which the keys of each run came
      {"a", 2}, {"b", 1}, {"c", 1}, {"c", 1}, {"d", 2}, {"c", 1}, {"a long word, beyond twelve bytes", 1}, {"b", 1}};
  CHECK_EQ(context.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK_EQ(context.text(i, "word"), expected[i].first);
    CHECK_EQ(context.get<std::int64_t>(i, "count"), expected[i].second);
    CHECK_EQ(context.get<std::int64_t>(i, "sum"), 7 * expected[i].second);
    CHECK_EQ(context.text(i, "last"), note);
  }
}

TEST(every_function_ignores_nulls) {
  const std::shared_ptr<Operator> spec = make_aggregate("all", kInput, kEverything, {"word"}, kAll, Emit::Final);
  FakeContext context(spec);
  const std::string early = "the first note, too long to be inline", late = "the last note, too long to be inline";
  const std::vector<Row> run = {row("a", 5, 1.5, early), row("a", -2, kNaN, "", 0), row("a", 3, kNaN), row("a", 9, 4, late),
                                row("b", 1, 0, "x", 0)};
  CHECK_EQ(context.call(run.data(), static_cast<std::int64_t>(run.size())), 0);
  CHECK_EQ(context.call(nullptr, 0), 2);
  CHECK_EQ(context.get<std::int64_t>(0, "count"), 4);
  CHECK_EQ(context.get<std::int64_t>(0, "notes"), 3);
  CHECK_EQ(context.get<std::int64_t>(0, "sum"), 15);
  CHECK_EQ(context.get<std::int64_t>(0, "min"), -2);
  CHECK_EQ(context.get<double>(0, "max"), 4.0);  // NaN doesn't win
  CHECK(std::isnan(context.get<double>(0, "total")) && std::isnan(context.get<double>(0, "mean")));
  CHECK_EQ(context.text(0, "first"), early);
  CHECK_EQ(context.text(0, "last"), late);
  CHECK_EQ(context.text(0, "least"), "");
  for (const char* name : {"total", "max", "mean", "first", "last", "least"}) {
    CHECK(!context.is_null(0, name));
    CHECK(context.is_null(1, name));
  }
  CHECK_EQ(context.get<std::int64_t>(1, "sum"), 1);
  CHECK_EQ(context.get<std::int64_t>(1, "notes"), 0);
}

TEST(updates_give_one_record_each_with_texts_of_their_own) {
  const std::shared_ptr<Operator> spec = make_aggregate("updates", kInput, kEverything, {"word"}, kAll, Emit::Update);
  CHECK_EQ(spec->flags(), static_cast<std::uint32_t>(REL_ONE_TO_ONE));
  FakeContext context(spec, 100);
  std::vector<std::string> notes;
  std::vector<Row> run;
  for (int i = 0; i < 100; ++i) notes.push_back("note number " + std::to_string(i) + " of more than twelve bytes");
  for (int i = 0; i < 100; ++i) run.push_back(row(i % 2 == 0 ? "even" : "odd", i, i, notes[static_cast<std::size_t>(i)]));
  CHECK_EQ(context.call(run.data(), 100), 100);
  CHECK_EQ(context.size(), 100U);
  for (int i = 0; i < 100; ++i) {
    const auto k = static_cast<std::size_t>(i);
    CHECK_EQ(context.text(k, "word"), i % 2 == 0 ? "even" : "odd");
    CHECK_EQ(context.get<std::int64_t>(k, "count"), i / 2 + 1);
    CHECK_EQ(context.text(k, "last"), notes[k]);
    CHECK_EQ(context.text(k, "first"), notes[k % 2]);
    CHECK_EQ(context.get<double>(k, "mean"), static_cast<double>(i + i % 2) / 2);
  }
}

TEST(an_overflowing_sum_fails_the_operator) {
  const std::shared_ptr<Operator> spec = make_aggregate("sum", kInput, schema_of({field("word", Type::String), field("sum", Type::Int64)}),
                                                        {"word"}, {{AggregateFunction::Sum, "n"}}, Emit::Final);
  FakeContext context(spec);
  const std::vector<Row> run = {row("a", std::numeric_limits<std::int64_t>::max()), row("b", 1), row("a", 1)};
  CHECK_EQ(context.call(run.data(), 3), REL_FAILED(2));
  CHECK(context.message.find("'n'") != std::string::npos);
}

TEST(without_keys_all_tuples_are_one_group) {
  const auto output = schema_of({field("count", Type::Int64), field("max", Type::Int64)});
  const std::shared_ptr<Operator> spec =
      make_aggregate("global", kInput, output, {}, {{AggregateFunction::Count, ""}, {AggregateFunction::Max, "n"}}, Emit::Final);
  FakeContext context(spec);
  const std::vector<Row> run = {row("a", 5), row("b", 7), row("c", 6)};
  CHECK_EQ(context.call(run.data(), 3), 0);
  CHECK_EQ(context.call(nullptr, 0), 1);
  CHECK_EQ(context.get<std::int64_t>(0, "count"), 3);
  CHECK_EQ(context.get<std::int64_t>(0, "max"), 7);
}

TEST(small_types_and_several_keys) {
  const auto input = schema_of({field("a", Type::Bool), field("b", Type::Int16, true), field("h", Type::Float16), field("u", Type::UInt64),
                                field("f", Type::Float32), field("d", Type::Date32)});
  const auto output = schema_of({field("b", Type::Int16, true), field("a", Type::Bool), field("h", Type::Float64), field("u", Type::UInt64),
                                 field("f", Type::Float64), field("d", Type::Date32)});
  const std::shared_ptr<Operator> spec = make_aggregate(
      "small", input, output, {"b", "a"},
      {{AggregateFunction::Sum, "h"}, {AggregateFunction::Max, "u"}, {AggregateFunction::Mean, "f"}, {AggregateFunction::First, "d"}},
      Emit::Final);
  FakeContext context(spec);
  std::vector<std::byte> run(3 * input->record_size());
  for (std::size_t i = 0; i < 3; ++i) {
    const auto put = [&](const char* name, auto value) {
      std::memcpy(run.data() + i * input->record_size() + input->find(name)->offset, &value, sizeof value);
    };
    put("a", std::uint8_t{1});
    put("h", static_cast<std::uint16_t>(i == 0 ? 0x3e00 : 0xc000));  // 1.5, -2
    put("u", std::uint64_t{1} << (62 + i % 2));
    put("f", 0.5F);
    put("d", static_cast<std::int32_t>(100 + i));
  }
  CHECK_EQ(context.call(run.data(), 3), 0);
  CHECK_EQ(context.call(nullptr, 0), 1);
  CHECK(context.is_null(0, "b"));
  CHECK_EQ(context.get<bool>(0, "a"), true);
  CHECK_EQ(context.get<double>(0, "h"), -2.5);
  CHECK_EQ(context.get<std::uint64_t>(0, "u"), std::uint64_t{1} << 63);
  CHECK_EQ(context.get<double>(0, "f"), 0.5);
  CHECK_EQ(context.get<std::int32_t>(0, "d"), 100);
}

TEST(a_stop_ends_the_last_emission) {
  const std::shared_ptr<Operator> spec = make_aggregate("count", kInput, kCounts, {"word"}, kCount, Emit::Final);
  FakeContext context(spec, 4);
  std::vector<std::string> words;
  for (int i = 0; i < 64; ++i) words.push_back(std::to_string(i));
  for (const std::string& word : words) {
    const Row one = row(word, 0);
    CHECK_EQ(context.call(&one, 1), 0);
  }
  context.stopped = true;
  CHECK_EQ(context.call(nullptr, 0), REL_STOPPED);
  CHECK_EQ(context.size(), 4U);
}

TEST(what_does_not_fit_is_refused_by_name) {
  const auto make = [](const std::shared_ptr<const Schema>& output, const std::vector<std::string>& keys,
                       const std::vector<Aggregate>& list) { return make_aggregate("agg", kInput, output, keys, list, Emit::Final); };
  const auto one = [](Type type, bool nullable = false) { return schema_of({field("word", Type::String), field("r", type, nullable)}); };
  const std::vector<std::string> word = {"word"}, nope = {"nope"};
  const std::vector<Aggregate> sum_text = {{AggregateFunction::Sum, "note"}}, sum_x = {{AggregateFunction::Sum, "x"}},
                               unknown = {{AggregateFunction::Sum, "nope"}}, bare = {{AggregateFunction::Sum, ""}};
  CHECK_THROWS(make(one(Type::Float64, true), word, sum_text), std::invalid_argument);
  CHECK_THROWS(make(one(Type::Int64, true), word, sum_x), std::invalid_argument);     // another type
  CHECK_THROWS(make(one(Type::Float64, false), word, sum_x), std::invalid_argument);  // may be null
  CHECK_THROWS(make(one(Type::Int64), word, unknown), std::invalid_argument);
  CHECK_THROWS(make(one(Type::Int64), word, bare), std::invalid_argument);
  CHECK_THROWS(make(one(Type::Int64), nope, kCount), std::invalid_argument);
  CHECK_THROWS(make(one(Type::Int64), {}, kCount), std::invalid_argument);
  CHECK_THROWS(make(one(Type::Int64), word, {}), std::invalid_argument);
  CHECK_THROWS(aggregate_function_of("median"), std::invalid_argument);
  CHECK(aggregate_function_of("last") == AggregateFunction::Last);
  try {
    (void)make(one(Type::Int64), nope, kCount);
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).find("'agg'") != std::string::npos && std::string(error.what()).find("'nope'") != std::string::npos);
  }
}

TEST(what_grows_survives_export_and_import) {
  const auto output = schema_of({field("word", Type::String), field("notes", Type::Int64), field("top", Type::Int64, true),
                                 field("second", Type::Int64, true), field("median", Type::Float64, true)});
  const std::vector<Aggregate> wanted = {{AggregateFunction::Distinct, "note"},
                                         {AggregateFunction::Largest, "n", "", 0, 2},
                                         {AggregateFunction::Largest, "n", "", 1, 2},
                                         {AggregateFunction::Quantile, "x", "", 0.5, 0.01}};
  const std::shared_ptr<Operator> here = make_aggregate("here", kInput, output, {"word"}, wanted, Emit::Final);
  const std::shared_ptr<Operator> there = make_aggregate("there", kInput, output, {"word"}, wanted, Emit::Final);
  FakeContext context(here);
  std::vector<std::string> notes;
  for (int i = 0; i < 1000; ++i) notes.push_back(std::string(static_cast<std::size_t>(i % 40), 'n') + std::to_string(i % 250));
  for (int i = 0; i < 1000; ++i) {
    const Row one = row(i % 3 == 0 ? "a" : "b", i, i - 500, notes[static_cast<std::size_t>(i)]);
    CHECK_EQ(context.call(&one, 1), 0);
  }
  const auto bytes = table_of_aggregate(*here).export_range(0, ~std::uint64_t{0});
  CHECK_EQ(table_of_aggregate(*there).import_range(bytes), 2U);
  FakeContext moved(there);
  const std::string unseen = "a note that was never seen before";
  const Row more = row("a", 2000, 0, unseen);
  CHECK_EQ(context.call(&more, 1), 0);
  CHECK_EQ(moved.call(&more, 1), 0);
  CHECK_EQ(context.call(nullptr, 0), 2);
  CHECK_EQ(moved.call(nullptr, 0), 2);
  std::map<std::string, std::array<double, 4>> found;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto values = [i](const FakeContext& of) {
      return std::array<double, 4>{static_cast<double>(of.get<std::int64_t>(i, "notes")),
                                   static_cast<double>(of.get<std::int64_t>(i, "top")),
                                   static_cast<double>(of.get<std::int64_t>(i, "second")), of.get<double>(i, "median")};
    };
    found[context.text(i, "word")] = values(context);
    CHECK(values(moved) == values(context));
  }
  CHECK_EQ(found["a"][1], 2000.0);
  CHECK_EQ(found["a"][2], 999.0);
  CHECK_EQ(found["b"][1], 998.0);
  CHECK(std::abs(found["b"][3]) <= 2.1);
}

// Whoever can write to a snapshot may change any byte of it: it is refused, or it is a state like another, with other figures.
TEST(no_changed_byte_of_what_grows_leads_out_of_bounds_or_into_a_loop) {
  const auto output = schema_of(
      {field("word", Type::String), field("notes", Type::Int64), field("top", Type::Int64, true), field("median", Type::Float64, true)});
  const std::vector<Aggregate> wanted = {
      {AggregateFunction::Distinct, "note"}, {AggregateFunction::Largest, "n", "", 0, 3}, {AggregateFunction::Quantile, "x", "", 0.5, 0.1}};
  std::vector<std::string> notes;
  for (int i = 0; i < 40; ++i) notes.push_back(std::string(static_cast<std::size_t>(i % 20), 'n') + std::to_string(i % 6));
  const auto feed = [&notes](FakeContext& context) {
    for (int i = 0; i < 40; ++i) {
      const Row one = row("a", i, (i - 20) * 3, notes[static_cast<std::size_t>(i)]);
      if (context.call(&one, 1) != 0) return;  // a sum, say, that doesn't fit any more
    }
    (void)context.call(nullptr, 0);
  };
  const std::shared_ptr<Operator> here = make_aggregate("here", kInput, output, {"word"}, wanted, Emit::Final);
  FakeContext context(here);
  for (int i = 0; i < 20; ++i) {
    const Row one = row("a", i, i - 10, notes[static_cast<std::size_t>(i)]);
    CHECK_EQ(context.call(&one, 1), 0);
  }
  const auto bytes = table_of_aggregate(*here).export_range(0, ~std::uint64_t{0});
  int refused = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned flipped : {0x01U, 0x10U, 0x80U, 0xFFU}) {
      auto changed = bytes;
      changed[at] ^= static_cast<std::byte>(flipped);
      const std::shared_ptr<Operator> there = make_aggregate("there", kInput, output, {"word"}, wanted, Emit::Final);
      try {
        (void)table_of_aggregate(*there).import_range(changed);
      } catch (const StateError&) {
        ++refused;
        continue;
      }
      FakeContext moved(there);
      feed(moved);
    }
  }
  CHECK(refused > static_cast<int>(bytes.size()));
}

REL_TEST_MAIN
