// Operators that need the Python token, with a fake interpreter that notices two threads inside and tokens held while submitting.
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
OperatorSpec python(std::string name, Interpreter& interpreter) {
  auto state = std::make_shared<Python>();
  state->interpreter = &interpreter;
  OperatorSpec spec = twice(std::move(name));
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
            OperatorSpec spec = index % 2 == 0 ? python("python", interpreter) : pass("native");
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
  OperatorSpec greedy = source(0, -1);
  greedy.flags |= REL_NEEDS_TOKEN;
  const OperatorId from = rig.add(greedy);
  rig.scheduler.connect(from, rig.add(sink("greedy")));
  const OperatorId other = rig.add(source(1, 50'000));
  OperatorSpec polite = python("polite", interpreter);
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

REL_TEST_MAIN
