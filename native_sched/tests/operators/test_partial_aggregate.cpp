// An aggregate that is run in part (Operator::takes_partial_runs): what it gives is what it gives without.
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "aggregated_rows.hpp"
#include "check.hpp"
#include "fake_context.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/state/state_table.hpp"

using namespace rayelastic;

// Rows go to the operator and to its part in turn, with marks between; what comes out is what it gives without parts.
TEST(parts_give_what_one_table_gives) {
  const auto output =
      schema_of({field("word", Type::String), field("count", Type::Int64), field("notes", Type::Int64), field("sum", Type::Int64),
                 field("min", Type::Int64), field("max", Type::Float64, true), field("least", Type::String, true),
                 field("different", Type::Int64), field("top", Type::Int64, true), field("median", Type::Float64, true)});
  const std::vector<Aggregate> wanted = {{AggregateFunction::Count, ""},
                                         {AggregateFunction::Count, "note"},
                                         {AggregateFunction::Sum, "n"},
                                         {AggregateFunction::Min, "n"},
                                         {AggregateFunction::Max, "x"},
                                         {AggregateFunction::Min, "note"},
                                         {AggregateFunction::Distinct, "note"},
                                         {AggregateFunction::Largest, "n", "", 1, 3},
                                         {AggregateFunction::Quantile, "x", "", 0.5, 0.01}};
  const std::shared_ptr<Operator> whole = make_aggregate("whole", kInput, output, {"word"}, wanted, Emit::Final);
  const std::shared_ptr<Operator> parted = make_aggregate("parted", kInput, output, {"word"}, wanted, Emit::Final);
  CHECK(parted->takes_partial_runs());
  FakeContext one(whole);
  FakeContext both(parted);
  std::mt19937_64 random(5);
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) texts.push_back(std::string(static_cast<std::size_t>(i % 30), 't') + std::to_string(i));
  std::string problem;
  for (int i = 0; i < 20'000; ++i) {
    const std::string& word = texts[random() % 300];
    const std::string& note = texts[random() % texts.size()];
    const Row each =
        row(word, static_cast<std::int64_t>(random() % 1'000'000) - 500'000, static_cast<double>(random() % 977) - 400, note, random() % 4);
    CHECK_EQ(one.call(&each, 1), 0);
    if (random() % 2 == 0) {
      CHECK_EQ(parted->process_partial(reinterpret_cast<const std::byte*>(&each), 1, problem), 1);
    } else {
      CHECK_EQ(both.call(&each, 1), 0);
    }
    if (i % 3'000 == 0) CHECK(parted->on_mark({MarkKind::Time, i}, &both));
  }
  CHECK(one.call(nullptr, 0) >= 0);
  CHECK(both.call(nullptr, 0) >= 0);
  CHECK_EQ(both.size(), one.size());
  const auto rows_of = [](const FakeContext& of) {
    std::map<std::string, std::string> rows;
    for (std::size_t i = 0; i < of.size(); ++i) {
      std::string& values = rows[of.text(i, "word")];
      for (const char* name : {"count", "notes", "sum", "min", "different"}) values += std::to_string(of.get<std::int64_t>(i, name)) + " ";
      for (const char* name : {"max", "median"}) values += of.is_null(i, name) ? "null " : std::to_string(of.get<double>(i, name)) + " ";
      values += (of.is_null(i, "top") ? "null " : std::to_string(of.get<std::int64_t>(i, "top")) + " ");
      values += of.is_null(i, "least") ? "null" : of.text(i, "least");
    }
    return rows;
  };
  CHECK(rows_of(both) == rows_of(one));
}

TEST(what_depends_on_the_order_has_no_parts) {
  for (const Aggregate& each : {Aggregate{AggregateFunction::Mean, "n"}, Aggregate{AggregateFunction::Sum, "x"},
                                Aggregate{AggregateFunction::First, "n"}, Aggregate{AggregateFunction::Stddev, "n", "", 1}}) {
    const Type type = each.function == AggregateFunction::First ? Type::Int64 : Type::Float64;
    const auto output = schema_of({field("word", Type::String), field("value", type, true)});
    CHECK(make_aggregate("ordered", kInput, output, {"word"}, {each}, Emit::Final)->takes_partial_runs() == false);
  }
  CHECK(make_aggregate("each", kInput, kCounts, {"word"}, kCount, Emit::Update)->takes_partial_runs() == false);
}

TEST(a_part_takes_no_more_than_so_many_keys_until_a_mark) {
  const std::shared_ptr<Operator> spec = make_aggregate("count", kInput, kCounts, {"word"}, kCount, Emit::Final);
  FakeContext context(spec, 100'000);
  std::string problem;
  std::int64_t taken = 0;
  const auto give = [&] {
    const std::string word = std::to_string(taken);
    const Row each = row(word, 0);
    return spec->process_partial(reinterpret_cast<const std::byte*>(&each), 1, problem);
  };
  for (; spec->has_partial_room(); ++taken) CHECK_EQ(give(), 1);
  CHECK_EQ(taken, 1 << 16);
  CHECK_EQ(table_of_aggregate(*spec).size(), 0U);
  spec->settle();
  CHECK_EQ(table_of_aggregate(*spec).size(), static_cast<std::size_t>(taken));
  CHECK(spec->has_partial_room());
  CHECK_EQ(give(), 1);
  CHECK(context.call(nullptr, 0) >= 0);
  CHECK_EQ(context.size(), static_cast<std::size_t>(taken + 1));
}

TEST(a_sum_of_parts_that_overflows_fails) {
  const auto output = schema_of({field("word", Type::String), field("sum", Type::Int64)});
  const std::shared_ptr<Operator> spec = make_aggregate("sum", kInput, output, {"word"}, {{AggregateFunction::Sum, "n"}}, Emit::Final);
  FakeContext context(spec);
  std::string problem;
  const std::vector<Row> half = {row("a", std::numeric_limits<std::int64_t>::max() / 2 + 1)};
  CHECK_EQ(context.call(half.data(), 1), 0);
  CHECK_EQ(spec->process_partial(reinterpret_cast<const std::byte*>(half.data()), 1, problem), 1);
  CHECK_EQ(spec->process_partial(reinterpret_cast<const std::byte*>(half.data()), 1, problem), REL_FAILED(0));
  CHECK(problem.find("doesn't fit into int64") != std::string::npos);
  CHECK(spec->on_mark({MarkKind::Split}, &context));
  CHECK(context.message.find("doesn't fit into int64") != std::string::npos);
}

// Whoever reads between two marks finds it out; the operator doesn't go on with what is left of it.
TEST(a_sum_that_overflows_where_it_is_read_fails_from_then_on) {
  const auto output = schema_of({field("word", Type::String), field("sum", Type::Int64)});
  const std::shared_ptr<Operator> spec = make_aggregate("sum", kInput, output, {"word"}, {{AggregateFunction::Sum, "n"}}, Emit::Final);
  FakeContext context(spec);
  std::string problem;
  const Row half = row("a", std::numeric_limits<std::int64_t>::max() / 2 + 1);
  const Row other = row("b", 1);
  CHECK_EQ(context.call(&half, 1), 0);
  CHECK_EQ(spec->process_partial(reinterpret_cast<const std::byte*>(&half), 1, problem), 1);
  for (int look = 0; look < 2; ++look) CHECK_THROWS(spec->settle(), StateError);
  CHECK_EQ(context.call(&other, 1), REL_FAILED(0));
  CHECK(context.message.find("doesn't fit into int64") != std::string::npos);
  CHECK(context.call(nullptr, 0) < 0);
}

REL_TEST_MAIN
