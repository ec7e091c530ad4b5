// Operators that need the Python token, with a fake interpreter that notices two threads inside and tokens held while submitting.
#include <condition_variable>
#include <mutex>

#include "pipeline.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

struct Interpreter {
  std::atomic<int> inside{0};
  std::atomic<int> threads{0};
  std::atomic<bool> broken{false};
  std::atomic<std::uint64_t> turns{0};

  ThreadHooks hooks() {
    ThreadHooks hooks;
    hooks.owner = this;
    hooks.started = [](void* owner, void** user) {
      auto* self = static_cast<Interpreter*>(owner);
      ++self->threads;
      *user = new int(0);
    };
    hooks.stopped = [](void* owner, void** user) {
      auto* self = static_cast<Interpreter*>(owner);
      --self->threads;
      delete static_cast<int*>(*user);
    };
    hooks.enter = [](void* owner, void** user) {
      auto* self = static_cast<Interpreter*>(owner);
      if (self->inside.fetch_add(1) != 0 || (*static_cast<int*>(*user))++ != 0) self->broken = true;
      ++self->turns;
    };
    hooks.leave = [](void* owner, void** user) {
      auto* self = static_cast<Interpreter*>(owner);
      if (self->inside.fetch_sub(1) != 1 || (*static_cast<int*>(*user))-- != 1) self->broken = true;
    };
    return hooks;
  }
};

struct Python : Guarded {
  Interpreter* interpreter = nullptr;
};

// Sees to it that the token is held; emits each row twice, with flushes in the middle.
TestOperator python(std::string name, Interpreter& interpreter) {
  auto state = std::make_shared<Python>();
  state->interpreter = &interpreter;
  TestOperator spec = twice(std::move(name));
  spec.flags |= REL_NEEDS_TOKEN;
  spec.state = std::shared_ptr<Guarded>(state);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Python*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      for (std::int64_t copy = 0; copy < 2; ++copy) {
        if (self.interpreter->inside.load() != 1) self.interpreter->broken = true;
        if (made == capacity) {
          if (rel_flush(context, made) != 0) return REL_STOPPED;
          made = 0;
        }
        const Row row = static_cast<const Row*>(in)[index];
        static_cast<Row*>(out)[made++] = {row.stream, 2 * row.sequence + copy};
      }
    }
    return made;
  };
  return spec;
}

}  // namespace

TEST(token_is_held_by_one_and_never_while_submitting) {
  for (const char* models : {"m", "d", "t", "md", "dm", "dt"}) {
    for (const unsigned threads : {1U, 2U, 4U}) {
      Interpreter interpreter;
      {
        Rig rig({.queue_records = 128, .hooks = interpreter.hooks()});
        OperatorId last = rig.add(sink("all"));
        for (std::int64_t stream = 0; stream < 3; ++stream) {
          OperatorId previous = rig.add(source(stream, 3'000));
          for (std::size_t index = 0; index < 4; ++index) {
            TestOperator spec = index % 2 == 0 ? python("python", interpreter) : pass("native");
            spec.model = model_for(models, index);
            const OperatorId id = rig.add(spec);
            rig.scheduler.connect(previous, id);
            previous = id;
          }
          rig.scheduler.connect(previous, last);
        }
        rig.scheduler.start({.thread_count = threads});
        rig.finish();
        expect_rows(state_of<Sink>(rig.specs[last]), 3 * 3'000 * 4);
      }
      CHECK(!interpreter.broken.load());
      CHECK(interpreter.turns.load() > 0);
      CHECK_EQ(interpreter.inside.load(), 0);
      CHECK_EQ(interpreter.threads.load(), 0);
    }
  }
}

// A python source that retakes the token at once can't starve a dynamic operator that needs it.
TEST(token_reaches_every_operator) {
  Interpreter interpreter;
  Rig rig({.hooks = interpreter.hooks()});
  TestOperator greedy = source(0, -1);
  greedy.flags |= REL_NEEDS_TOKEN;
  const OperatorId from = rig.add(greedy);
  rig.scheduler.connect(from, rig.add(sink("greedy")));
  const OperatorId other = rig.add(source(1, 50'000));
  TestOperator polite = python("polite", interpreter);
  polite.model = ThreadingModel::Dynamic;
  const OperatorId middle = rig.add(polite);
  rig.scheduler.connect(other, middle);
  rig.scheduler.connect(middle, rig.add(sink("polite end")));
  rig.scheduler.start({.thread_count = 2});
  CHECK(eventually([&] { return rig.last_sink().rows.load() == 100'000; }));
  rig.scheduler.stop(true);
  CHECK(!interpreter.broken.load());
  CHECK(!rig.last_sink().disordered.load());
}

TEST(token_is_fair_to_who_waits) {
  Interpreter interpreter;
  Token token(interpreter.hooks());
  std::atomic<bool> done{false};
  std::atomic<int> turns{0};
  std::thread greedy([&] {
    int depth = 0;
    void* user = &depth;
    while (!done.load()) {
      token.enter(&user);
      for (int spin = 0; spin < 1000; ++spin) cpu_relax();
      (void)token.leave(&user);
    }
  });
  std::thread polite([&] {
    int depth = 0;
    void* user = &depth;
    while (!done.load()) {
      token.enter(&user);
      ++turns;
      (void)token.leave(&user);
    }
  });
  const bool fair = check::eventually([&] { return turns.load() >= 50; });
  done = true;
  greedy.join();
  polite.join();
  CHECK(fair);
  CHECK(!interpreter.broken.load());
}

// An interpreter that a thread gives up while it waits, as CPython's sleep and sockets do, and operators that wait for one another in it.
struct Waiters {
  std::mutex interpreter;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  std::atomic<std::int64_t> meetings{0};  // two were waiting at the same time
  std::atomic<std::int64_t> computing{0};
  std::atomic<bool> computes{false};

  ThreadHooks hooks() {
    ThreadHooks hooks;
    hooks.owner = this;
    hooks.enter = [](void* owner, void**) { static_cast<Waiters*>(owner)->interpreter.lock(); };
    hooks.leave = [](void* owner, void**) { static_cast<Waiters*>(owner)->interpreter.unlock(); };
    return hooks;
  }
  void wait() {
    interpreter.unlock();
    {
      std::unique_lock lock(mutex);
      if (++waiting == 2) ++meetings;
      changed.notify_all();
      changed.wait_for(lock, std::chrono::milliseconds(5), [this] { return waiting == 2; });
      --waiting;
    }
    interpreter.lock();
  }
};

TestOperator waiter(std::string name, const std::shared_ptr<Waiters>& waiters) {
  struct State : Guarded {
    std::shared_ptr<Waiters> waiters;
  };
  auto state = std::make_shared<State>();
  state->waiters = waiters;
  TestOperator spec = pass(std::move(name));
  spec.flags |= REL_NEEDS_TOKEN;
  spec.model = ThreadingModel::Dynamic;
  spec.state = std::shared_ptr<Guarded>(state);
  static const rel_process plain = spec.process;
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    Waiters& all = *static_cast<State*>(static_cast<Guarded*>(opaque))->waiters;
    if (all.computes.load()) {
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
      while (std::chrono::steady_clock::now() < end) all.computing.fetch_add(1, std::memory_order_relaxed);
    } else {
      all.wait();
    }
    return plain(in, n, out, capacity, opaque, context);
  };
  return spec;
}

// Two that sleep in Python don't keep each other out; as soon as they compute they take turns again.
TEST(operators_that_wait_in_python_wait_at_the_same_time) {
  const auto waiters = std::make_shared<Waiters>();
  Rig rig({.run_records = 64, .hooks = waiters->hooks()});
  OperatorId previous = rig.add(source(0, -1));
  for (TestOperator spec : {waiter("one", waiters), waiter("two", waiters), sink()}) {
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(previous, id);
    previous = id;
  }
  rig.scheduler.start({.thread_count = 2});
  CHECK(eventually([&] { return waiters->meetings.load() > 20; }));
  const std::uint64_t refused = rig.scheduler.sample().token_refusals;
  waiters->computes = true;
  CHECK(eventually([&] { return rig.scheduler.sample().token_refusals > refused + 20; }));
  rig.scheduler.stop(false);
  rig.check_exclusive();
}

// A source in Python is called beside the token, and its time in front of the interpreter isn't time that it waits for its next tuple.
TEST(what_a_source_waits_for_the_interpreter_isnt_its_own) {
  const auto waiters = std::make_shared<Waiters>();
  Rig rig({.hooks = waiters->hooks()});
  TestOperator spec = source(0, -1);
  spec.flags |= REL_BESIDE_TOKEN;
  const OperatorId from = rig.add(spec);
  rig.scheduler.connect(from, rig.add(sink()));
  {
    const std::lock_guard others(waiters->interpreter);
    rig.scheduler.start({.thread_count = 1});
    CHECK(eventually([&] { return rig.scheduler.sample().ticks > 20; }));
    CHECK_EQ(rig.scheduler.sample().operators[from].tuples_out, 0U);
    CHECK_EQ(rig.scheduler.sample().operators[from].time_ns, 0U);
  }
  CHECK(eventually([&] { return rig.last_sink().rows.load() > 1'000; }));
  CHECK(rig.scheduler.sample().token_wait_ns > 100'000'000);
  rig.scheduler.stop(false);
  rig.check_exclusive();
}

REL_TEST_MAIN
