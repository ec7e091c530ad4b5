// The scheduler among operators that misbehave (R10): user code that throws, lies, takes all memory, never comes back.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "text_rows.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
#endif

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

enum class Fault { Throws, ThrowsForeign, TooMany, Negative, FailsFar, StopsUnasked, FlushesTooMany, FlushesNegative };

struct Faulty : Guarded {
  Fault fault = Fault::Throws;
  std::int64_t at = 0;
};

std::int64_t misbehave(Fault fault, std::int64_t capacity, rel_context* context) {
  struct Foreign {};
  switch (fault) {
    case Fault::Throws:
      throw std::runtime_error("too much");
    case Fault::ThrowsForeign:
      throw Foreign{};
    case Fault::TooMany:
      return capacity + 1;
    case Fault::Negative:
      return INT64_MIN + 1;
    case Fault::FailsFar:
      return REL_FAILED(std::int64_t{1} << 40);
    case Fault::StopsUnasked:
      return REL_STOPPED;
    case Fault::FlushesTooMany:
      return rel_flush(context, capacity + 1) == 0 ? 0 : REL_STOPPED;
    case Fault::FlushesNegative:
      return rel_flush(context, -1) == 0 ? 0 : REL_STOPPED;
  }
  return 0;
}

constexpr Fault kFaults[] = {Fault::Throws,   Fault::ThrowsForeign, Fault::TooMany,        Fault::Negative,
                             Fault::FailsFar, Fault::StopsUnasked,  Fault::FlushesTooMany, Fault::FlushesNegative};

// Behaves for `at` rows.
TestOperator faulty(Fault fault, std::int64_t at) {
  auto state = std::make_shared<Faulty>();
  state->fault = fault;
  state->at = at;
  TestOperator spec{.name = "faulty", .state = std::shared_ptr<Guarded>(state), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Faulty*>(static_cast<Guarded*>(opaque));
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
    self.at -= n;
    return self.at > 0 ? n : misbehave(self.fault, capacity, context);
  };
  return spec;
}

TestOperator faulty_source(Fault fault) {
  TestOperator spec = faulty(fault, 0);
  spec.flags = REL_SOURCE;
  spec.inputs = {};
  spec.process = [](const void*, std::int64_t, void*, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    return misbehave(static_cast<Faulty*>(static_cast<Guarded*>(opaque))->fault, capacity, context);
  };
  return spec;
}

void expect_failure(Rig& rig, const std::string& name) {
  rig.scheduler.start({.thread_count = 2});
  CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
  const auto failure = rig.scheduler.failure();
  CHECK(failure.has_value());
  CHECK_EQ(failure->operator_name, name);
  rig.scheduler.stop(false);
  CHECK(!rig.last_sink().finished.load());
}

// Takes what it can get, in the first call; then passes rows on.
struct Greedy : Guarded {
  std::int64_t piece = 0;
  std::int64_t most = 0;  // pieces
  std::int64_t got = 0;
  std::atomic<bool> refused{false};
};

TestOperator greedy(std::int64_t piece, std::int64_t most) {
  auto state = std::make_shared<Greedy>();
  state->piece = piece;
  state->most = most;
  TestOperator spec = pass("greedy");
  spec.state = std::shared_ptr<Guarded>(state);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Greedy*>(static_cast<Guarded*>(opaque));
    for (; !self.refused && self.got < self.most; ++self.got) {
      void* memory = rel_allocate(context, self.piece);
      if (memory == nullptr) {
        self.refused = true;
      } else {
        std::memset(memory, 1, static_cast<std::size_t>(self.piece));
      }
    }
    std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
    return n;
  };
  return spec;
}

// The address space of the process can grow by `bytes` at most, as long as this lives.
class AddressLimit {
 public:
  explicit AddressLimit(double bytes) {
    ::getrlimit(RLIMIT_AS, &before_);
    std::ifstream statm("/proc/self/statm");
    double pages = 0;
    statm >> pages;
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) + bytes);
    CHECK_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressLimit() { ::setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

// Sanitizers reserve the address space themselves, and qemu's user mode keeps to no limit of it.
bool can_limit() {
  if (kSanitized) return false;
  constexpr std::size_t kBytes = 1 << 30;
  const AddressLimit limit(0);
  void* const beyond = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (beyond == MAP_FAILED) return true;
  ::munmap(beyond, kBytes);
  std::puts("       left out: this system limits no memory");
  return false;
}

void run_greedy(const char* model, std::int64_t piece, std::int64_t most) {
  constexpr std::int64_t kRows = 20'000;
  Rig rig;
  const OperatorId from = rig.add(source(0, kRows));
  TestOperator spec = greedy(piece, most);
  spec.model = model_for(model, 0);
  const OperatorId id = rig.add(std::move(spec));
  const OperatorId end = rig.add(sink());
  rig.scheduler.connect(from, id);
  rig.scheduler.connect(id, end);
  rig.scheduler.start({.thread_count = 2});
  rig.finish();  // no failure: the function got its refusal and went on
  CHECK(state_of<Greedy>(rig.specs[id]).refused);
  expect_rows(rig.last_sink(), kRows);
}

// A sink that doesn't come back until it is interrupted.
struct Gone : Guarded {
  std::atomic<bool> entered{false};
  std::atomic<bool> released{false};
};

TestOperator gone() {
  TestOperator spec{
      .name = "gone", .flags = REL_SINK, .state = std::shared_ptr<Guarded>(std::make_shared<Gone>()), .inputs = {row_schema()}};
  spec.process = [](const void*, std::int64_t, void*, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    auto& self = *static_cast<Gone*>(static_cast<Guarded*>(opaque));
    self.entered = true;
    self.entered.notify_all();
    self.released.wait(false);
    return REL_STOPPED;
  };
  spec.interrupt = [](void* opaque) {
    auto& self = *static_cast<Gone*>(static_cast<Guarded*>(opaque));
    self.released = true;
    self.released.notify_all();
  };
  return spec;
}

// Rows whose one large text is in memory once; engines that copy texts need it for each row.
struct Shared : Guarded {
  explicit Shared(std::size_t bytes) : chunk(Chunk::allocate(bytes)) { std::memset(chunk->data(), 'x', bytes); }
  const ChunkRef chunk;
};

TestOperator shared_text_source(std::size_t bytes) {
  TestOperator spec{.name = "texts",
                    .flags = REL_SOURCE,
                    .state = std::shared_ptr<Guarded>(std::make_shared<Shared>(bytes)),
                    .outputs = {text_row_schema()}};
  spec.process = [](const void*, std::int64_t, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    Chunk* const chunk = static_cast<Shared*>(static_cast<Guarded*>(opaque))->chunk.get();
    context->attach(chunk);
    *static_cast<TextRow*>(out) = {0, StringView(chunk->data(), static_cast<std::uint32_t>(chunk->size()))};
    return 1;
  };
  return spec;
}

// One operator never comes back; another pipeline of the same PE works on. A source without end may be the one that is caught in it,
// since whoever finds a full queue helps (P17); with a single row it is a scheduler thread, which is seen and replaced (P25).
void block_for_ever(const char* model, unsigned threads, std::int64_t rows) {
  const bool sees_stuck = rows == 1 && *model == 'd';
  Rig rig({.stuck_after = std::chrono::milliseconds(50)});
  const OperatorId blocked_source = rig.add(source(1, rows));
  TestOperator blocked = gone();
  blocked.model = model_for(model, 0);
  rig.scheduler.connect(blocked_source, rig.add(blocked));
  rig.chain(-1, 5, "d");
  rig.scheduler.start({.thread_count = threads});
  state_of<Gone>(rig.specs[1]).entered.wait(false);
  const std::int64_t before = rig.last_sink().rows;
  CHECK(eventually([&] { return rig.last_sink().rows > before + 100'000; }));
  if (sees_stuck) {
    CHECK(eventually([&] { return rig.scheduler.in_force().stuck == 1; }));
    CHECK(eventually([&] { return rig.scheduler.in_force().thread_count == threads; }));
  }
  const std::int64_t later = rig.last_sink().rows;
  CHECK(eventually([&] { return rig.last_sink().rows > later + 100'000; }));
  rig.scheduler.stop(false);
  CHECK(!rig.scheduler.failure().has_value());
  CHECK(!rig.last_sink().disordered);
  rig.check_exclusive();
}

}  // namespace

TEST(every_fault_is_a_failure_that_names_the_operator) {
  for (const Fault fault : kFaults) {
    for (const char* models : {"m", "d", "t"}) {
      Rig rig;
      const OperatorId from = rig.add(source(0, -1));
      TestOperator spec = faulty(fault, 10'000);
      spec.model = model_for(models, 0);
      const OperatorId id = rig.add(std::move(spec));
      TestOperator last = sink();
      last.model = model_for(models, 1);
      const OperatorId end = rig.add(std::move(last));
      rig.scheduler.connect(from, id);
      rig.scheduler.connect(id, end);
      expect_failure(rig, "faulty");
    }
  }
}

TEST(a_source_may_misbehave_as_well) {
  for (const Fault fault : kFaults) {
    Rig rig;
    const OperatorId from = rig.add(faulty_source(fault));
    rig.scheduler.connect(from, rig.add(sink()));
    expect_failure(rig, "faulty");
  }
}

TEST(memory_that_cannot_be_had_is_refused) {
  for (const char* model : {"m", "d", "t"}) {
    for (const std::int64_t bytes : {std::int64_t{-1}, INT64_MIN, INT64_MAX, INT64_MAX - 63, std::int64_t{1} << 60})
      run_greedy(model, bytes, 1);
  }
}

TEST(an_operator_takes_memory_until_refused) {
  if (!can_limit()) return;
  constexpr double kRoom = 256 << 20;
  constexpr std::int64_t kPiece = 8 << 20;
  for (const char* model : {"m", "d", "t"}) {
    const AddressLimit limit(kRoom);
    run_greedy(model, kPiece, 1000);
  }
}

TEST(memory_that_the_engine_cannot_have_is_a_failure) {
  if (!can_limit()) return;
  constexpr std::size_t kRoom = 256 << 20;
  for (const char* models : {"dd", "md", "td"}) {
    const AddressLimit limit(kRoom);
    Rig rig({.queue_bytes = 4 * kRoom, .queue_work = {}, .deep_copy = true});  // on a busy machine work would bound it first
    const OperatorId from = rig.add(shared_text_source(kRoom / 32));
    TestOperator middle = text_pass();
    middle.model = model_for(models, 0);
    const OperatorId id = rig.add(std::move(middle));
    TestOperator last = gone();
    last.inputs = {text_row_schema()};
    last.model = model_for(models, 1);
    rig.scheduler.connect(from, id);
    rig.scheduler.connect(id, rig.add(std::move(last)));
    rig.scheduler.start({.thread_count = 2});
    CHECK(rig.scheduler.wait_for(std::chrono::seconds(300)));
    CHECK_EQ(rig.scheduler.failure().value().message, std::string("a thread of it can't go on: std::bad_alloc"));
    rig.scheduler.stop(false);
  }
}

TEST(an_operator_that_never_comes_back_stops_nobody_else) {
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{-1}}) {
    block_for_ever("m", 1, rows);
    block_for_ever("t", 1, rows);
    block_for_ever("d", 2, rows);
    block_for_ever("d", 1, rows);
  }
}

REL_TEST_MAIN
