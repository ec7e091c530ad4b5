#include "rayelastic/operators/succession.hpp"

#include <atomic>
#include <thread>

#include "check.hpp"
#include "fake_context.hpp"
#include "rayelastic/operators/count_sink.hpp"
#include "rayelastic/operators/sequence_source.hpp"
#include "rayelastic/operators/time/splits.hpp"

using namespace rayelastic;

namespace {

const auto kNumber = std::make_shared<Schema>(std::vector<Field>{{"value", Type::Int64, false, "l", 0, -1}});

std::shared_ptr<Operator> numbers(std::int64_t count) { return make_sequence_source("numbers", kNumber, count, 0); }

// Announces split 3, which follows splits before it, and emits nothing.
class Announcing final : public Operator {
 public:
  Announcing() : Operator("announcing", {}, {kNumber}, REL_SOURCE) {}
  std::int64_t process(const std::byte*, std::int64_t, std::byte*, std::int64_t, rel_context* context) override {
    context->mark(split_mark(3, SplitChange::Now));
    context->finish();
    return 0;
  }
};

class Noting final : public FakeContext {
 public:
  using FakeContext::FakeContext;
  void mark(Mark mark) override { marks.emplace_back(split_of(mark), change_of(mark)); }

  std::vector<std::pair<std::int64_t, SplitChange>> marks;
};

TEST(all_of_the_first_come_before_the_second) {
  for (const std::int64_t first : {0, 1, 7, 20}) {
    const auto succession = std::make_shared<Succession>();
    const auto both = make_succession("both", numbers(first), numbers(5), false, false, succession);
    CHECK(!succession->seam().has_value());
    FakeContext context(both, 7);
    CHECK(context.run_source() >= 0);
    CHECK(context.size() == static_cast<std::size_t>(first) + 5);
    CHECK(succession->seam() == first);
  }
}

TEST(it_may_begin_with_the_second) {
  const auto succession = std::make_shared<Succession>();
  succession->begin(true, 0);
  const auto both = make_succession("both", numbers(9), numbers(5), false, false, succession);
  FakeContext context(both, 7);
  CHECK(context.run_source() >= 0);
  CHECK(context.size() == 5);
  CHECK(succession->seam() == 0);
}

TEST(a_first_that_is_shorter_than_it_was_fails) {
  const auto succession = std::make_shared<Succession>();
  succession->begin(false, 4);
  const auto both = make_succession("both", numbers(3), numbers(5), false, false, succession);
  FakeContext context(both, 7);
  CHECK(context.run_source() < 0);
  CHECK(context.message.starts_with("ended 1 tuples before"));
}

TEST(an_interrupted_first_is_not_followed) {
  const auto succession = std::make_shared<Succession>();
  const auto both = make_succession("both", numbers(20), numbers(5), false, false, succession);
  std::atomic<bool> turn = true;
  std::thread waiting([&] { turn = succession->wait(); });
  both->interrupt();
  waiting.join();
  FakeContext context(both, 64);
  CHECK(context.run_source() >= 0);
  CHECK(!turn);
  CHECK(context.size() == 20);
  CHECK(!succession->seam().has_value());
}

TEST(splits_of_the_first_end_when_the_second_has_begun) {
  using enum SplitChange;
  const auto succession = std::make_shared<Succession>();
  const auto both = make_succession("both", std::make_shared<Announcing>(), std::make_shared<Announcing>(), true, true, succession);
  Noting context(both, 7);
  CHECK(context.run_source() >= 0);
  const decltype(context.marks) expected{{0, Now}, {6, Now}, {0, End}, {1, Now}, {6, End}, {7, Now}, {1, End}};
  CHECK(context.marks == expected);
}

TEST(what_does_not_fit_is_rejected) {
  const auto wide =
      std::make_shared<Schema>(std::vector<Field>{{"value", Type::Int64, false, "l", 0, -1}, {"payload", Type::Binary, false, "z", 8, -1}});
  const auto succession = std::make_shared<Succession>();
  CHECK_THROWS(make_succession("both", numbers(1), make_sequence_source("wide", wide, 1, 5), false, false, succession),
               std::invalid_argument);
  const auto sink = make_count_sink("sink", kNumber, std::make_shared<std::atomic<std::int64_t>>(0));
  CHECK_THROWS(make_succession("both", numbers(1), sink, false, false, succession), std::invalid_argument);
}

}  // namespace

REL_TEST_MAIN
