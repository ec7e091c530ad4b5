// Operators for scheduler tests: rows carry (stream, sequence), every operator notices when two threads are in it at once, and the
// sink notices what is lost, doubled or out of order.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "check.hpp"
#include "rayelastic/engine/scheduler.hpp"
#include "test_operator.hpp"

namespace rayelastic::check {

struct Row {
  std::int64_t stream = 0;
  std::int64_t sequence = 0;
};

inline std::shared_ptr<const Schema> row_schema() {
  return std::make_shared<Schema>(
      std::vector<Field>{{.name = "stream", .type = Type::Int64, .format = "l"}, {.name = "sequence", .type = Type::Int64, .format = "l"}});
}

// State of every operator below: only one thread may be inside.
struct Guarded {
  virtual ~Guarded() = default;
  std::atomic<int> inside{0};
  std::atomic<bool> shared{false};
  std::atomic<bool> finished{false};  // an ON_FINISH call came
};

class Inside {
 public:
  explicit Inside(Guarded& guarded) : guarded_(guarded) {
    if (guarded_.inside.fetch_add(1) != 0) guarded_.shared = true;
  }
  ~Inside() { guarded_.inside.fetch_sub(1); }

 private:
  Guarded& guarded_;
};

struct Source : Guarded {
  std::int64_t stream = 0;
  std::int64_t count = 0;  // rows; -1: until stopped
  std::int64_t next = 0;
  std::uint64_t dice = 1;
};

inline TestOperator source(std::int64_t stream, std::int64_t count) {
  auto state = std::make_shared<Source>();
  state->stream = stream;
  state->count = count;
  state->dice = static_cast<std::uint64_t>(stream) + 1;
  TestOperator spec{
      .name = "source" + std::to_string(stream), .flags = REL_SOURCE, .state = std::shared_ptr<Guarded>(state), .outputs = {row_schema()}};
  spec.process = [](const void*, std::int64_t, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Source*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    auto* rows = static_cast<Row*>(out);
    self.dice = self.dice * 6364136223846793005U + 1442695040888963407U;
    std::int64_t made = 1 + static_cast<std::int64_t>(self.dice >> 33) % capacity;  // runs of all lengths
    if (self.count >= 0) made = std::min(made, self.count - self.next);
    for (std::int64_t index = 0; index < made; ++index) rows[index] = {self.stream, self.next++};
    if (self.next == self.count) rel_finish(context);
    return made;
  };
  return spec;
}

// Passes rows on as they are.
inline TestOperator pass(std::string name, std::uint32_t flags = REL_ONE_TO_ONE) {
  TestOperator spec{
      .name = std::move(name), .flags = flags, .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Guarded*>(state);
    const Inside inside(self);
    const auto* from = static_cast<const Row*>(in);
    auto* to = static_cast<Row*>(out);
    for (std::int64_t index = 0; index < n; ++index) to[index] = from[index];
    if (n == 0) self.finished = true;
    return n;
  };
  return spec;
}

// Makes rows 2k and 2k + 1 of row k, flushing whenever its output is full.
inline TestOperator twice(std::string name) {
  TestOperator spec{.name = std::move(name), .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(state));
    const auto* from = static_cast<const Row*>(in);
    auto* to = static_cast<Row*>(out);
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      for (std::int64_t copy = 0; copy < 2; ++copy) {
        if (made == capacity) {
          if (rel_flush(context, made) != 0) return REL_STOPPED;
          made = 0;
        }
        to[made++] = {from[index].stream, 2 * from[index].sequence + copy};
      }
    }
    return made;
  };
  return spec;
}

struct Sink : Guarded {
  std::map<std::int64_t, std::int64_t> next;  // by stream
  std::atomic<std::int64_t> rows{0};
  std::atomic<bool> disordered{false};
};

inline TestOperator sink(std::string name = "sink") {
  TestOperator spec{.name = std::move(name),
                    .flags = REL_SINK | REL_ON_FINISH,
                    .state = std::shared_ptr<Guarded>(std::make_shared<Sink>()),
                    .inputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Sink*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    const auto* rows = static_cast<const Row*>(in);
    for (std::int64_t index = 0; index < n; ++index) {
      if (rows[index].sequence != self.next[rows[index].stream]++) self.disordered = true;
    }
    self.rows += n;
    if (n == 0) self.finished = true;
    return 0;
  };
  return spec;
}

template <class State>
State& state_of(const TestOperator& spec) {
  return *static_cast<State*>(static_cast<Guarded*>(spec.state.get()));
}

inline ThreadingModel model_for(const std::string& models, std::size_t index) {
  const char letter = models[index % models.size()];
  return letter == 'm' ? ThreadingModel::Manual : letter == 'd' ? ThreadingModel::Dynamic : ThreadingModel::Dedicated;
}

// A scheduler with what it runs kept in view.
class Rig {
 public:
  explicit Rig(SchedulerOptions options = {}) : scheduler(options) {}

  OperatorId add(TestOperator spec) {
    specs.push_back(std::move(spec));
    return install(scheduler, specs.back());
  }
  // models: one letter per operator, repeated: m(anual), d(ynamic), t (own thread).
  void chain(std::int64_t rows, std::size_t length, const std::string& models, std::uint32_t flags = REL_ONE_TO_ONE) {
    OperatorId previous = add(source(0, rows));
    for (std::size_t index = 0; index < length; ++index) {
      TestOperator spec = pass("pass" + std::to_string(index), flags);
      spec.model = model_for(models, index);
      const OperatorId id = add(std::move(spec));
      scheduler.connect(previous, id);
      previous = id;
    }
    TestOperator last = sink();
    last.model = model_for(models, length);
    const OperatorId id = add(std::move(last));
    scheduler.connect(previous, id);
  }
  [[nodiscard]] Sink& last_sink() { return state_of<Sink>(specs.back()); }
  void check_exclusive() {
    for (const TestOperator& spec : specs) {
      if (static_cast<Guarded*>(spec.state.get())->shared) fail(__FILE__, __LINE__, "two threads in " + spec.name);
    }
  }
  void finish() {
    if (!scheduler.wait_for(std::chrono::seconds(300))) fail(__FILE__, __LINE__, "the pipeline hangs");
    if (const auto failure = scheduler.failure()) fail(__FILE__, __LINE__, failure->operator_name + ": " + failure->message);
    scheduler.stop(true);
    check_exclusive();
  }

  std::vector<TestOperator> specs;  // before the scheduler: states outlive its threads
  Scheduler scheduler;
};

inline void expect_rows(Sink& sink, std::int64_t rows) {
  CHECK_EQ(sink.rows.load(), rows);
  CHECK(!sink.disordered.load());
  CHECK(sink.finished.load());
}

}  // namespace rayelastic::check
