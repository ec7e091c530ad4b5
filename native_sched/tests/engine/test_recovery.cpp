// Operators whose function fails on some records that something else answers: each record's output comes in its place, once, under all
// models and in runs of all lengths; what nobody answers fails the job behind the output of those before.
#include <memory>

#include "rayelastic/operator/recovery.hpp"
#include "several_ports.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::int64_t kRefused = 7;  // one of so many records
constexpr std::int64_t kNoAnswer = -1;

enum class Makes { One, Kept, Many };

// Rows of a record: itself; itself if it is even; itself and two more.
std::int64_t rows_of(Makes makes, std::int64_t sequence) { return makes == Makes::One ? 1 : makes == Makes::Kept ? (sequence + 1) % 2 : 3; }

Row row_of(Makes makes, const Row& from, std::int64_t number) {
  if (makes == Makes::One) return from;
  return {from.stream, makes == Makes::Kept ? from.sequence / 2 : 3 * from.sequence + number};
}

// Fails on each seventh record, in a MANY behind two of its three rows.
template <Makes kMakes>
std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void*, rel_context* context) {
  const auto* from = static_cast<const Row*>(in);
  auto* to = static_cast<Row*>(out);
  std::int64_t made = 0;
  for (std::int64_t index = 0; index < n; ++index) {
    const Row row = from[index];
    const bool refused = row.sequence % kRefused == 3;
    if (refused && kMakes != Makes::Many) {
      if (kMakes == Makes::Kept) rel_kept(context, made);
      return REL_FAILED(index);
    }
    for (std::int64_t number = 0; number < rows_of(kMakes, row.sequence); ++number) {
      if (refused && number == 2) return REL_FAILED(index);
      if (made == capacity) {
        if (rel_flush(context, made) != 0) return REL_STOPPED;
        made = 0;
      }
      to[made++] = row_of(kMakes, row, number);
    }
  }
  return made;
}

class Given final : public Answers {
 public:
  explicit Given(Makes makes, std::int64_t not_answered = kNoAnswer) : makes_(makes), not_answered_(not_answered) {}

  bool ask(const std::byte* record) override {
    std::memcpy(&row_, record, sizeof row_);
    ++asked;
    return row_.sequence != not_answered_;
  }
  bool submit(rel_context* context, std::int64_t skipped) override {
    for (std::int64_t number = skipped; number < rows_of(makes_, row_.sequence); ++number) {
      const Row row = row_of(makes_, row_, number);
      if (!context->emit(0, &row, 1)) return false;
    }
    return true;
  }

  std::int64_t asked = 0;

 private:
  const Makes makes_;
  const std::int64_t not_answered_;
  Row row_;
};

std::shared_ptr<Operator> recovering(Makes makes, std::shared_ptr<Given> given) {
  TestOperator spec{.name = "step", .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.flags = makes == Makes::One ? REL_ONE_TO_ONE | REL_IN_PLACE : makes == Makes::Kept ? REL_FILTER | REL_IN_PLACE : 0U;
  spec.process = makes == Makes::One ? process<Makes::One> : makes == Makes::Kept ? process<Makes::Kept> : process<Makes::Many>;
  return make_recovering(*spec.make(), std::move(given));
}

void each_in_its_place(Makes makes) {
  at_all([&](unsigned threads, const char* models) {
    Rig rig({.queue_records = 64, .run_records = 64});
    const auto given = std::make_shared<Given>(makes);
    const OperatorId step = install(rig.scheduler, recovering(makes, given), {.model = model_for(models, 1)});
    rig.scheduler.connect(behind(rig, rig.add(source(0, kRows)), 1, models), step);
    rig.scheduler.connect(step, rig.add(sink()));
    rig.scheduler.start({.thread_count = threads});
    rig.finish();
    std::int64_t wanted = 0;
    for (std::int64_t sequence = 0; sequence < kRows; ++sequence) wanted += rows_of(makes, sequence);
    expect_rows(rig.last_sink(), wanted);
    CHECK_EQ(given->asked, (kRows + 3) / kRefused);
    CHECK_EQ(rig.scheduler.sample().operators[step].answered, static_cast<std::uint64_t>(given->asked));
  });
}

}  // namespace

TEST(one_output_a_record) { each_in_its_place(Makes::One); }
TEST(a_filter) { each_in_its_place(Makes::Kept); }
TEST(several_outputs_some_of_them_out_already) { each_in_its_place(Makes::Many); }

TEST(what_nobody_answers_fails_behind_what_was_before) {
  for (const Makes makes : {Makes::One, Makes::Kept, Makes::Many}) {
    Rig rig;
    const OperatorId step = install(rig.scheduler, recovering(makes, std::make_shared<Given>(makes, 703)));
    rig.scheduler.connect(rig.add(source(0, kRows)), step);
    rig.scheduler.connect(step, rig.add(sink()));
    rig.scheduler.start({.thread_count = 1});
    CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
    const auto failure = rig.scheduler.failure();
    CHECK(failure.has_value());
    Row row;
    std::memcpy(&row, failure->record.data(), sizeof row);
    CHECK_EQ(row.sequence, 703);
    rig.scheduler.stop(false);
    CHECK(!rig.last_sink().disordered.load());
    const std::int64_t before = makes == Makes::One ? 703 : makes == Makes::Kept ? 352 : 3 * 703;
    const std::int64_t ahead = rig.last_sink().rows.load() - before;  // of the failing record, went out with a full buffer
    CHECK(ahead >= 0 && ahead <= (makes == Makes::Many ? 2 : 0));
  }
}

TEST(only_what_can_be_called_again) {
  TestOperator spec = pass("keyed");
  spec.flags |= REL_KEYED;
  bool refused = false;
  try {
    (void)make_recovering(*spec.make(), std::make_shared<Given>(Makes::One));
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}

REL_TEST_MAIN
