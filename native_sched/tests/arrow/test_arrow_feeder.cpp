#include "rayelastic/arrow/arrow_feeder.hpp"

#include <atomic>
#include <thread>

#include "check.hpp"
#include "fake_context.hpp"
#include "rayelastic/arrow/arrow_sink.hpp"
#include "rayelastic/arrow/arrow_writer.hpp"

using namespace rayelastic;

namespace {

const auto kSchema =
    std::make_shared<const Schema>(std::vector<Field>{{"n", Type::Int64, false, "l", 0, -1}, {"s", Type::String, false, "u", 0, -1}});

struct Record {
  std::int64_t n = 0;
  StringView s;
};

struct Exported {
  ArrowArray array;
  ArrowSchema schema;
};

// A batch of `rows` records numbered from `first`, with a text that isn't inline.
Exported batch_of(std::int64_t first, std::int64_t rows) {
  ArrowWriter writer(kSchema);
  for (std::int64_t i = first; i < first + rows; ++i) {
    const std::string text = "the text of record " + std::to_string(i);
    const Record record = {i, StringView(text.data(), static_cast<std::uint32_t>(text.size()))};
    CHECK_EQ(writer.append(reinterpret_cast<const std::byte*>(&record), 1), 1U);
  }
  Exported exported;
  writer.take(&exported.array);
  export_schema(*kSchema, &exported.schema);
  return exported;
}

bool push(ArrowFeeder& feeder, std::int64_t first, std::int64_t rows) {
  Exported batch = batch_of(first, rows);
  const bool taken = feeder.push(&batch.array, &batch.schema);
  CHECK(batch.array.release == nullptr && batch.schema.release == nullptr);
  return taken;
}

}  // namespace

TEST(all_rows_of_all_producers_arrive_in_each_producers_order) {
  constexpr std::int64_t kBatches = 40, kRows = 100, kProducers = 3;
  const auto feeder = std::make_shared<ArrowFeeder>(kSchema, 10'000);  // about one batch
  const std::shared_ptr<Operator> spec = make_arrow_source("source", feeder);
  FakeContext context(spec, 33);
  std::vector<std::thread> producers;
  std::atomic<int> running{kProducers};
  for (std::int64_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (std::int64_t i = 0; i < kBatches; ++i) (void)push(*feeder, p * 1'000'000 + i * kRows, kRows);
      if (--running == 0) feeder->finish();
    });
  }
  CHECK(context.run_source() >= 0);
  for (std::thread& producer : producers) producer.join();
  CHECK_EQ(context.size(), static_cast<std::size_t>(kBatches * kRows * kProducers));
  std::vector<std::int64_t> next(kProducers);
  for (std::size_t i = 0; i < context.size(); ++i) {
    const auto n = context.get<std::int64_t>(i, "n");
    CHECK_EQ(n % 1'000'000, next[static_cast<std::size_t>(n / 1'000'000)]++);
    CHECK_EQ(context.text(i, "s"), "the text of record " + std::to_string(n));
  }
}

TEST(a_full_queue_makes_its_producer_wait) {
  ArrowFeeder feeder(kSchema, 10'000);
  CHECK(push(feeder, 0, 1000));  // larger than the capacity, but the queue was empty
  std::atomic<bool> pushed{false};
  std::thread producer([&] {
    CHECK(push(feeder, 1000, 10));
    pushed = true;
  });
  CHECK(!pushed.load() && feeder.queued_bytes() > 10'000);
  CHECK_EQ(feeder.next().batch->rows(), 1000U);
  CHECK_EQ(feeder.next().batch->rows(), 10U);
  producer.join();
  CHECK_EQ(feeder.queued_bytes(), 0U);
}

TEST(an_interruption_frees_everybody) {
  const auto feeder = std::make_shared<ArrowFeeder>(kSchema, 10);
  CHECK(push(*feeder, 0, 10));
  std::atomic<bool> refused{false};
  std::thread producer([&] { refused = !push(*feeder, 10, 10); });
  feeder->interrupt();
  producer.join();
  CHECK(refused.load());
  CHECK(!push(*feeder, 0, 1));

  const auto idle = std::make_shared<ArrowFeeder>(kSchema, 10);
  const std::shared_ptr<Operator> spec = make_arrow_source("source", idle);
  FakeContext context(spec);
  std::thread stopper([&spec] { spec->interrupt(); });
  CHECK_EQ(context.run_source(), 0);
  stopper.join();
  CHECK(context.finished);
}

TEST(a_failure_is_the_sources) {
  const auto feeder = std::make_shared<ArrowFeeder>(kSchema, 1'000'000);
  const std::shared_ptr<Operator> spec = make_arrow_source("source", feeder);
  FakeContext context(spec);
  CHECK(push(*feeder, 0, 10));
  feeder->fail("partition 3 was lost");
  feeder->fail("later");
  CHECK_EQ(context.run_source(), REL_FAILED(0));
  CHECK_EQ(context.message, "partition 3 was lost");
  CHECK(!push(*feeder, 0, 10));
}

TEST(a_batch_that_does_not_fit_is_refused_to_its_producer) {
  const auto other = std::make_shared<const Schema>(std::vector<Field>{{"n", Type::Int32, false, "i", 0, -1}});
  ArrowFeeder feeder(other, 1000);
  CHECK_THROWS(push(feeder, 0, 10), ArrowError);
  CHECK_EQ(feeder.queued_bytes(), 0U);
}

TEST(a_sink_hands_batches_over) {
  struct Taken {
    std::vector<std::int64_t> rows;
    std::int64_t next = 0;
    bool fail = false;
  };
  const auto taken = std::make_shared<Taken>();
  const ArrowConsumer consume = [](void* user, ArrowArray* array, ArrowSchema* schema, char* error, std::size_t error_size) {
    auto& all = *static_cast<Taken*>(user);
    if (all.fail) {
      std::snprintf(error, error_size, "the disk is full");
      return 1;
    }
    const ArrowBatch batch(kSchema, array, *schema);  // leaves the schema for the sink to release
    std::vector<Record> records(batch.rows());
    batch.read(0, batch.rows(), reinterpret_cast<std::byte*>(records.data()));
    for (const Record& record : records) CHECK_EQ(record.n, all.next++);
    all.rows.push_back(static_cast<std::int64_t>(batch.rows()));
    return 0;
  };
  const std::shared_ptr<Operator> spec = make_arrow_sink("sink", kSchema, consume, taken, 100);
  FakeContext context(spec);
  std::vector<Record> run(230);
  for (std::size_t i = 0; i < run.size(); ++i) run[i] = {static_cast<std::int64_t>(i), StringView("text", 4)};
  CHECK_EQ(context.call(run.data(), 230), 0);
  CHECK((taken->rows == std::vector<std::int64_t>{100, 100}));
  CHECK_EQ(context.call(nullptr, 0), 0);
  CHECK((taken->rows == std::vector<std::int64_t>{100, 100, 30}));
  CHECK_EQ(context.call(nullptr, 0), 0);  // nothing is left to give
  CHECK_EQ(taken->rows.size(), 3U);
  CHECK_EQ(flush_arrow_sink(*spec), "");
  CHECK_EQ(taken->rows.size(), 3U);
  taken->next = 0;
  CHECK_EQ(context.call(run.data(), 30), 0);
  CHECK_EQ(flush_arrow_sink(*spec), "");
  CHECK((taken->rows == std::vector<std::int64_t>{100, 100, 30, 30}));
  taken->fail = true;
  CHECK_EQ(context.call(run.data(), 30), 0);
  CHECK_EQ(flush_arrow_sink(*spec), "the disk is full");
  CHECK_EQ(flush_arrow_sink(*spec), "");  // the refused batch is gone, as it is when a run fails
  CHECK_EQ(context.call(run.data(), 230), REL_FAILED(99));
  CHECK_EQ(context.message, "the disk is full");
  CHECK_THROWS(make_arrow_sink("sink", kSchema, consume, taken, 0), std::invalid_argument);
}

REL_TEST_MAIN
