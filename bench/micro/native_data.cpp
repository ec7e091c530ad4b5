// What the native data structures cost by themselves, without scheduler: nanoseconds a word or record, rows and bytes a second.
// Prints the best and the median of some rounds, in processor time, so that a busy machine disturbs less. Build with -DREL_BENCH=ON; run: bench_native_data.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "rayelastic/aggregate.hpp"
#include "rayelastic/arrow_reader.hpp"
#include "rayelastic/arrow_writer.hpp"
#include "rayelastic/keyed_state.hpp"
#include "rayelastic/text.h"
#include "rayelastic/text_source.hpp"

using namespace rayelastic;

namespace {

constexpr int kRounds = 15;
constexpr std::size_t kRun = 256;  // records a call, as the engine's runs

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Seconds of each round, sorted.
std::vector<double> timed(const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    const double start = processor_seconds();
    work();
    seconds.push_back(processor_seconds() - start);
  }
  std::ranges::sort(seconds);
  return seconds;
}

void print_cost(const char* what, const std::vector<double>& seconds, double items) {
  std::printf("%-58s best %8.2f ns  median %8.2f ns\n", what, seconds.front() / items * 1e9, seconds[kRounds / 2] / items * 1e9);
}

void print_rate(const char* what, const std::vector<double>& seconds, double amount, const char* unit) {
  std::printf("%-58s best %8.2f %s  median %8.2f %s\n", what, amount / seconds.front(), unit, amount / seconds[kRounds / 2], unit);
}

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
  void fail(std::string message) override { std::printf("failed: %s\n", message.c_str()); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark) override {}
  [[nodiscard]] bool stopping() const override { return false; }
  ChunkRef kept;
  bool finished = false;
};

std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }

void keyed(const char* what, const Words& words) {
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
  print_cost((std::string("lookup a word, ") + what).c_str(), timed([&] { count(false); }), items);
  print_cost((std::string("lookup and count a word, ") + what).c_str(), timed([&] { count(true); }), items);
  std::vector<std::byte> bytes;
  print_cost("  export a key", timed([&] { bytes = table.export_range(0, ~0ULL); }), static_cast<double>(table.size()));
  print_cost("  import a key", timed([&] {
               KeyedState other(schema_of({{"word", Type::String, false, "u"}}), keys, 8, initial);
               (void)other.import_range(bytes);
             }),
             static_cast<double>(table.size()));
}

void aggregates(const Words& words) {
  const auto input = schema_of({{"word", Type::String, false, "u"}, {"n", Type::Int64, false, "l"}, {"x", Type::Float64, true, "g"}});
  struct Row {
    StringView word;
    std::int64_t n;
    double x;
    std::uint64_t valid;
  };
  std::vector<Row> rows;
  for (std::size_t i = 0; i < words.words.size(); ++i) rows.push_back({words.words[i], static_cast<std::int64_t>(i), 0.5, i % 8 != 0});
  const auto run = [&](const char* what, std::shared_ptr<const Schema> output, const std::vector<Aggregate>& list, Emit emit) {
    const OperatorSpec spec = make_aggregate("aggregate", input, output, {"word"}, list, emit);
    std::vector<std::byte> out(kRun * output->record_size());
    Nowhere context;
    const auto all = [&] {
      for (std::size_t first = 0; first + kRun <= rows.size(); first += kRun)
        (void)spec.process(&rows[first], kRun, out.data(), kRun, spec.state.get(), &context);
    };
    all();
    print_cost(what, timed(all), static_cast<double>(rows.size()));
  };
  const Field word = {"word", Type::String, false, "u"};
  const Field count = {"count", Type::Int64, false, "l"};
  run("aggregate: count", schema_of({word, count}), {{AggregateFunction::Count, ""}}, Emit::Final);
  run("aggregate: count, update", schema_of({word, count}), {{AggregateFunction::Count, ""}}, Emit::Update);
  run("aggregate: count, sum, min, mean of a nullable",
      schema_of({word, count, {"sum", Type::Int64, false, "l"}, {"min", Type::Int64, false, "l"}, {"mean", Type::Float64, true, "g"}}),
      {{AggregateFunction::Count, ""}, {AggregateFunction::Sum, "n"}, {AggregateFunction::Min, "n"}, {AggregateFunction::Mean, "x"}},
      Emit::Final);
}

void arrow(const char* what, const std::shared_ptr<const Schema>& schema, const std::vector<std::byte>& records, std::size_t rows) {
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
  const auto millions = static_cast<double>(rows) / 1e6;
  print_rate((std::string("Arrow in, ") + what).c_str(), timed([&] {
               for (std::size_t first = 0; first < rows; first += kRun) batch.read(first, kRun, out.data());
             }),
             millions, "M rows/s");
  print_rate((std::string("Arrow out, ") + what).c_str(), timed([&] {
               write(&array);
               array.release(&array);
             }),
             millions, "M rows/s");
  ArrowWriter writer(schema, 65536);
  print_rate((std::string("Arrow out in batches of 65536, ") + what).c_str(), timed([&] {
               for (std::size_t first = 0; first < rows; first += kRun) {
                 (void)writer.append(records.data() + first * stride, kRun);
                 if (writer.rows() < 65536) continue;
                 writer.take(&array);
                 array.release(&array);
               }
             }),
             millions, "M rows/s");
  arrow_schema.release(&arrow_schema);
}

void arrows(const Words& words) {
  constexpr std::size_t kRows = std::size_t{1} << 20;
  const auto numeric = schema_of(
      {{"a", Type::Int64, false, "l"}, {"b", Type::Float64, false, "g"}, {"c", Type::Int64, false, "l"}, {"d", Type::Float64, false, "g"}});
  std::vector<std::byte> records(kRows * numeric->record_size(), std::byte{1});
  arrow("4 numeric columns", numeric, records, kRows);
  const auto nullable = schema_of(
      {{"a", Type::Int64, true, "l"}, {"b", Type::Float64, true, "g"}, {"c", Type::Int64, true, "l"}, {"d", Type::Float64, true, "g"}});
  records.assign(kRows * nullable->record_size(), std::byte{7});
  arrow("4 numeric columns with nulls", nullable, records, kRows);
  const auto texts = schema_of(
      {{"a", Type::Int64, false, "l"}, {"s", Type::String, false, "u"}, {"b", Type::Float64, false, "g"}, {"t", Type::String, false, "u"}});
  records.assign(kRows * texts->record_size(), std::byte{0});
  for (std::size_t i = 0; i < kRows; ++i) {
    std::memcpy(records.data() + i * texts->record_size() + texts->find("s")->offset, &words.words[i], sizeof(StringView));
    std::memcpy(records.data() + i * texts->record_size() + texts->find("t")->offset, &words.words[i + 1], sizeof(StringView));
  }
  arrow("2 numeric and 2 text columns", texts, records, kRows);
}

void text(const Words& words) {
  std::string content;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < words.words.size(); ++i) {
    content += words.words[i].view();
    content += i % 10 == 9 ? '\n' : ' ';
    lines += i % 10 == 9;
  }
  std::size_t found = 0;
  print_cost("split a sentence of 10 words", timed([&] {
               std::int64_t end = 0;
               for (std::int64_t at = 0;
                    (at = rel_text_next_word(content.data(), static_cast<std::int64_t>(content.size()), end, &end)) >= 0;)
                 ++found;
             }),
             static_cast<double>(lines));
  print_rate("UTF-8 validation, ASCII", timed([&] {
               found += static_cast<std::size_t>(rel_text_is_valid(content.data(), static_cast<std::int64_t>(content.size())));
             }),
             static_cast<double>(content.size()) / 1e9, "GB/s");
  const auto path = std::filesystem::temp_directory_path() / "rayelastic_native_data.txt";
  std::ofstream(path) << content;
  std::int64_t rows = 0;
  print_rate("text source, file in the page cache", timed([&] {
               const OperatorSpec spec = make_text_source("text", schema_of({{"line", Type::String, false, "u"}}), {path.string()});
               std::vector<StringView> out(kRun);
               Nowhere context;
               while (!context.finished) rows += spec.process(nullptr, 0, out.data(), kRun, spec.state.get(), &context);
             }),
             static_cast<double>(content.size()) / 1e9, "GB/s");
  std::printf("  %zu lines of %.0f bytes; %zu words, %lld rows\n", lines, static_cast<double>(content.size()) / static_cast<double>(lines),
              found, static_cast<long long>(rows));
  std::filesystem::remove(path);
}

}  // namespace

int main() {
  const Words words = zipf_words(50'000, 2'000'000, 0);
  keyed("50,000 Zipf words", words);
  keyed("50,000 Zipf words, a fifth of them long", zipf_words(50'000, 2'000'000, 20));
  aggregates(words);
  arrows(words);
  text(words);
}
