// What the native data structures cost by themselves, without scheduler, beside a copy of the same bytes where there is one: keyed
// look-up, aggregates, Arrow in and out, text. Processor time, so that a busy machine disturbs less.
//
//   bench_native_data [rounds=9]
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "measure.hpp"
#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/arrow/arrow_writer.hpp"
#include "rayelastic/operators/aggregate/aggregate.hpp"
#include "rayelastic/operators/text_source.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/text/text.h"

using namespace rayelastic;
using namespace rayelastic::bench;

namespace {

constexpr std::size_t kRun = 256;  // records a call, as the engine's runs

using Work = std::function<void()>;

double seconds_of(const Work& work) {
  const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  work();
  return cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
}

// Rows of ns an item, each beside a limit if there is one.
class Table {
 public:
  explicit Table(std::int64_t rounds) : rounds_(rounds) {}

  void row(const std::string& key, const std::string& what, const std::string& unit, double items, const Work& work,
           const std::string& limit_what = {}, const Work& limit = {}) const {
    Row row{.key = key, .what = what, .unit = unit, .limit_what = limit_what};
    for (std::int64_t round = 0; round < rounds_; ++round) {
      if (limit) row.rounds.limit.push_back(1e9 * seconds_of(limit) / items);
      row.rounds.ours.push_back(1e9 * seconds_of(work) / items);
    }
    print(row);
  }

 private:
  std::int64_t rounds_;
};

struct Words {
  std::vector<std::string> distinct;
  std::vector<StringView> words;
};

// Zipf-distributed (exponent 1) words of 3 to 8 letters, of which `longer` percent have 10 more.
Words zipf_words(std::size_t distinct, std::size_t count, unsigned longer) {
  std::mt19937_64 random(1);
  Words words;
  for (std::size_t i = 0; i < distinct; ++i) {
    std::string word;
    for (std::size_t rest = i; rest > 0 || word.size() < 3; rest /= 26) word += static_cast<char>('a' + rest % 26);
    word.append(random() % 5, 'y');
    if (random() % 100 < longer) word.append(10, 'z');
    words.distinct.push_back(word);
  }
  std::vector<double> cumulated(distinct);
  double sum = 0;
  for (std::size_t i = 0; i < distinct; ++i) cumulated[i] = sum += 1.0 / static_cast<double>(i + 1);
  std::uniform_real_distribution<double> uniform(0, sum);
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(std::ranges::lower_bound(cumulated, uniform(random)) - cumulated.begin());
    const std::string& word = words.distinct[std::min(at, distinct - 1)];
    words.words.emplace_back(word.data(), static_cast<std::uint32_t>(word.size()));
  }
  return words;
}

// An engine that takes everything and keeps nothing.
struct Nowhere : rel_context {
  bool flush(std::int64_t) override { return true; }
  void finish() override { finished = true; }
  void* allocate(std::size_t bytes) override { return (kept = Chunk::allocate(bytes))->data(); }
  void attach(Chunk* chunk) override { kept = ChunkRef::share(chunk); }
  void fail(std::string message) override { give_up(message); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark) override {}
  [[nodiscard]] bool stopping() const override { return false; }
  ChunkRef kept;
  bool finished = false;
};

std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }

void keyed(const Table& report, const std::string& key, const std::string& what, const Words& words) {
  const std::vector<std::string> keys = {"word"};
  const std::vector<std::byte> initial(8);
  KeyedState table(schema_of({{"word", Type::String, false, "u"}}), keys, 8, initial);
  const auto count = [&](bool update) {
    void* slots[kRun];
    for (std::size_t first = 0; first + kRun <= words.words.size(); first += kRun) {
      table.lookup(reinterpret_cast<const std::byte*>(&words.words[first]), kRun, slots);
      if (!update) continue;
      for (void* slot : slots) ++*static_cast<std::int64_t*>(slot);
    }
  };
  const auto items = static_cast<double>(words.words.size());
  count(true);
  report.row(key + ".lookup", "look up a word, " + what, "ns/word", items, [&] { count(false); });
  report.row(key + ".count", "look up and count a word, " + what, "ns/word", items, [&] { count(true); });
  std::vector<std::byte> bytes;
  const auto keys_kept = static_cast<double>(table.size());
  report.row(key + ".export", "export a key, " + what, "ns/key", keys_kept, [&] { bytes = table.export_range(0, ~0ULL); });
  report.row(key + ".import", "import a key, " + what, "ns/key", keys_kept, [&] {
    KeyedState other(schema_of({{"word", Type::String, false, "u"}}), keys, 8, initial);
    (void)other.import_range(bytes);
  });
}

void aggregates(const Table& report, const Words& words) {
  const auto input = schema_of({{"word", Type::String, false, "u"}, {"n", Type::Int64, false, "l"}, {"x", Type::Float64, true, "g"}});
  struct Row {
    StringView word;
    std::int64_t n;
    double x;
    std::uint64_t valid;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < words.words.size(); ++i) rows.push_back({words.words[i], static_cast<std::int64_t>(i), 0.5, i % 8 != 0});
  const auto run = [&](const char* key, const char* what, std::shared_ptr<const Schema> output, const std::vector<Aggregate>& list,
                       Emit emit) {
    const std::shared_ptr<Operator> op = make_aggregate("aggregate", input, output, {"word"}, list, emit);
    std::vector<std::byte> out(kRun * output->record_size());
    Nowhere context;
    const auto all = [&] {
      for (std::size_t first = 0; first + kRun <= rows.size(); first += kRun)
        (void)op->process(reinterpret_cast<const std::byte*>(&rows[first]), kRun, out.data(), kRun, &context);
    };
    all();
    report.row(key, what, "ns/tuple", static_cast<double>(rows.size()), all);
  };
  const Field word = {"word", Type::String, false, "u"};
  const Field count = {"count", Type::Int64, false, "l"};
  run("aggregate.count", "aggregate: count", schema_of({word, count}), {{AggregateFunction::Count, ""}}, Emit::Final);
  run("aggregate.update", "aggregate: count, update", schema_of({word, count}), {{AggregateFunction::Count, ""}}, Emit::Update);
  run("aggregate.four", "aggregate: count, sum, min, mean of a nullable",
      schema_of({word, count, {"sum", Type::Int64, false, "l"}, {"min", Type::Int64, false, "l"}, {"mean", Type::Float64, true, "g"}}),
      {{AggregateFunction::Count, ""}, {AggregateFunction::Sum, "n"}, {AggregateFunction::Min, "n"}, {AggregateFunction::Mean, "x"}},
      Emit::Final);
}

void arrow(const Table& report, const std::string& key, const std::string& what, const std::shared_ptr<const Schema>& schema,
           const std::vector<std::byte>& records, std::size_t rows) {
  const std::size_t stride = schema->record_size();
  std::vector<std::byte> out(kRun * stride);
  ArrowSchema arrow_schema;
  export_schema(*schema, &arrow_schema);
  ArrowArray array;
  const auto write = [&](ArrowArray* to) {
    ArrowWriter writer(schema, rows);
    for (std::size_t first = 0; first < rows; first += kRun) (void)writer.append(records.data() + first * stride, kRun);
    writer.take(to);
  };
  write(&array);
  const ArrowBatch batch(schema, &array, arrow_schema);
  const auto items = static_cast<double>(rows);
  report.row(
      "arrow.in." + key, "Arrow in, " + what, "ns/row", items,
      [&] {
        for (std::size_t first = 0; first < rows; first += kRun) batch.read(first, kRun, out.data());
      },
      "memcpy of the records, run by run",
      [&] {
        for (std::size_t first = 0; first < rows; first += kRun) {
          std::memcpy(out.data(), records.data() + first * stride, kRun * stride);
          asm volatile("" ::"r"(out.data()) : "memory");
        }
      });
  report.row(
      "arrow.out." + key, "Arrow out, " + what, "ns/row", items,
      [&] {
        write(&array);
        array.release(&array);
      },
      "memcpy of the records into fresh memory",
      [&] {
        const std::unique_ptr<std::byte[]> fresh(new std::byte[rows * stride]);
        std::memcpy(fresh.get(), records.data(), rows * stride);
        asm volatile("" ::"r"(fresh.get()) : "memory");
      });
  arrow_schema.release(&arrow_schema);
}

void arrows(const Table& report, const Words& words) {
  constexpr std::size_t kRows = std::size_t{1} << 20;
  const auto numeric = schema_of(
      {{"a", Type::Int64, false, "l"}, {"b", Type::Float64, false, "g"}, {"c", Type::Int64, false, "l"}, {"d", Type::Float64, false, "g"}});
  std::vector<std::byte> records(kRows * numeric->record_size(), std::byte{1});
  arrow(report, "numeric", "4 numeric columns", numeric, records, kRows);
  const auto nullable = schema_of(
      {{"a", Type::Int64, true, "l"}, {"b", Type::Float64, true, "g"}, {"c", Type::Int64, true, "l"}, {"d", Type::Float64, true, "g"}});
  records.assign(kRows * nullable->record_size(), std::byte{7});
  arrow(report, "nullable", "4 numeric columns with nulls", nullable, records, kRows);
  const auto texts = schema_of(
      {{"a", Type::Int64, false, "l"}, {"s", Type::String, false, "u"}, {"b", Type::Float64, false, "g"}, {"t", Type::String, false, "u"}});
  records.assign(kRows * texts->record_size(), std::byte{0});
  for (std::size_t i = 0; i < kRows; ++i) {
    std::memcpy(records.data() + i * texts->record_size() + texts->find("s")->offset, &words.words[i], sizeof(StringView));
    std::memcpy(records.data() + i * texts->record_size() + texts->find("t")->offset, &words.words[i + 1], sizeof(StringView));
  }
  arrow(report, "text", "2 numeric and 2 text columns", texts, records, kRows);
}

void text(const Table& report, const Words& words) {
  std::string content;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < words.words.size(); ++i) {
    content += words.words[i].view();
    content += i % 10 == 9 ? '\n' : ' ';
    lines += i % 10 == 9;
  }
  const auto size = static_cast<std::int64_t>(content.size());
  const auto sentences = static_cast<double>(lines);
  std::string copy(content.size(), ' ');
  const Work copying = [&] {
    std::memcpy(copy.data(), content.data(), content.size());
    asm volatile("" ::"r"(copy.data()) : "memory");
  };
  std::size_t found = 0;
  report.row(
      "text.valid", "UTF-8 validation of a sentence, ASCII", "ns/sentence", sentences,
      [&] { found += static_cast<std::size_t>(rel_text_is_valid(content.data(), size)); }, "memcpy", copying);
  const auto path = std::filesystem::temp_directory_path() / "rayelastic_native_data.txt";
  std::ofstream(path) << content;
  std::size_t rows = 0;
  report.row(
      "text.source", "text source, a sentence a line, file in the page cache", "ns/sentence", sentences,
      [&] {
        const std::shared_ptr<Operator> op =
            make_text_source("text", schema_of({{"line", Type::String, false, "u"}}), {.paths = {path.string()}});
        std::vector<StringView> out(kRun);
        Nowhere context;
        while (!context.finished)
          rows += static_cast<std::size_t>(op->process(nullptr, 0, reinterpret_cast<std::byte*>(out.data()), kRun, &context));
      },
      "reading the file", [&] { std::ifstream(path).read(copy.data(), size); });
  if (found == 0 || rows % lines != 0) give_up("words or lines are missing");
  std::filesystem::remove(path);
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv, {{"rounds", 9}});
  const Table report(settings.whole("rounds"));
  const Words words = zipf_words(50'000, 2'000'000, 0);
  keyed(report, "keyed.short", "50,000 Zipf words", words);
  keyed(report, "keyed.long", "50,000 Zipf words, a fifth of them long", zipf_words(50'000, 2'000'000, 20));
  aggregates(report, words);
  arrows(report, words);
  text(report, words);
}
