// An operator whose calls are under way at the same time: it hands tuples on to a Python object that has them dealt with elsewhere (an event
// loop, threads of its own), and gives what comes back when it comes. See python_concurrent.hpp.
//
// Marks keep their place: one that comes while calls are under way becomes a bar in the object's line, and goes on when the line has come to it.
#include "python/python_concurrent.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <stdexcept>

#include "python/gate/inside.hpp"
#include "python/gate/python_gate.hpp"
#include "python/port_context.hpp"
#include "record/object_ref.hpp"
#include "record/record_codec.hpp"

namespace rayelastic::python {

namespace {

constexpr std::int64_t kFailedSomewhere = REL_FAILED(INT64_MAX - 1);  // of tuples that are no longer in the run
constexpr std::size_t kAtOnce = 256;                                  // records that are submitted together

struct Output {
  std::unique_ptr<RecordCodec> codec;
  EncodedRecords encoded = {};
  std::vector<std::byte> out = {};
};

struct Concurrent final : Operator {
  Concurrent(const ConcurrentCalls& described, std::shared_ptr<PythonFailure> where)
      : Operator(described.name, {described.input}, described.outputs, REL_ON_FINISH),
        calls(ObjectRef::share(described.calls)),
        codec(described.name, described.input, described.input_type),
        failure(std::move(where)),
        ordered(described.ordered) {
    for (const auto& schema : described.outputs) results.push_back({.codec = std::make_unique<RecordCodec>(name(), schema, nullptr)});
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override;
  bool on_mark(Mark mark, rel_context* context) override;
  void on_command(rel_context* context) override;
  [[nodiscard]] bool takes_commands() const override { return true; }
  [[nodiscard]] bool has_pending() const override { return under_way.load(std::memory_order_acquire) > 0; }

  ObjectRef calls;
  RecordCodec codec;  // of the input
  std::vector<Output> results;
  const std::shared_ptr<PythonFailure> failure;
  const bool ordered;
  std::deque<Mark> marks;                   // held back, in the order of the bars
  std::atomic<std::uint64_t> under_way{0};  // tuples and bars that the object has; read by those who hold the operator
};

// What one visit to the object brought.
struct Visit {
  std::int64_t done = 0;  // tuples and bars
  std::int64_t skipped = 0;
  bool bar = false;
};

enum class Came : std::uint8_t { Nothing, Something, Failed };

// The GIL without the engine's token, which others have meanwhile: nothing is computed here.
class Entered {
 public:
  explicit Entered(Concurrent& self) : inside_((enter_python(), *self.failure)) {}
  ~Entered() = default;
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  struct Leave {
    ~Leave() { leave_python(); }
  };
  Leave leave_{};
  Inside inside_;
};

// GIL. Takes (list for each output, tuples and bars, left out, is there a bar), or None. False: a Python error is set.
bool take(Concurrent& self, PyObject* given, Visit& visit) {
  PyObject* lists = nullptr;
  Py_ssize_t done = 0;
  Py_ssize_t skipped = 0;
  int bar = 0;
  if (PyArg_ParseTuple(given, "O!nnp", &PyList_Type, &lists, &done, &skipped, &bar) == 0) return false;
  visit = {.done = done, .skipped = skipped, .bar = bar != 0};
  if (PyList_GET_SIZE(lists) != static_cast<Py_ssize_t>(self.results.size())) {
    PyErr_SetString(PyExc_TypeError, "expected a list for each output port");
    return false;
  }
  for (std::size_t port = 0; port < self.results.size(); ++port) {
    Output& output = self.results[port];
    output.encoded.clear();
    PyObject* items = PyList_GET_ITEM(lists, static_cast<Py_ssize_t>(port));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); ++i) {
      if (!output.codec->encode_one(PyList_GET_ITEM(items, i), output.encoded)) return false;
    }
  }
  return true;
}

// One visit: what is done by now, up to the next bar.
Came visit(Concurrent& self, rel_context* context, Visit& came) {
  const Entered entered(self);
  const ObjectRef given = ObjectRef::take(PyObject_CallMethod(self.calls.get(), "collect", nullptr));
  if (given && given.get() == Py_None) return Came::Nothing;
  if (given && take(self, given.get(), came)) return Came::Something;
  context->fail(self.failure->keep());
  return Came::Failed;
}

// Without the GIL. False: stop.
bool submit(Concurrent& self, const Visit& came, rel_context* context) {
  if (came.skipped > 0) context->count(Tally::Skipped, came.skipped);
  for (std::size_t port = 0; port < self.results.size(); ++port) {
    Output& output = self.results[port];
    if (output.encoded.count == 0) continue;
    const std::size_t room = std::min(output.encoded.count, kAtOnce);
    output.out.resize(room * output.codec->schema().record_size());
    PortContext to(*context, static_cast<std::int32_t>(port), output.out.data());
    const std::int64_t left = emit(output.codec->schema(), output.encoded, output.out.data(), static_cast<std::int64_t>(room), &to);
    if (left < 0 || !to.flush(left)) return false;
  }
  if (came.bar) {
    const Mark mark = self.marks.front();
    self.marks.pop_front();
    context->mark(mark);
  }
  self.under_way.fetch_sub(static_cast<std::uint64_t>(came.done), std::memory_order_release);
  return !context->stopping();
}

// All that is done by now goes out. Negative: as of a rel_process.
std::int64_t give(Concurrent& self, rel_context* context) {
  Visit came;
  for (;;) {
    switch (visit(self, context, came)) {
      case Came::Nothing:
        return 0;
      case Came::Failed:
        return kFailedSomewhere;
      case Came::Something:
        if (!submit(self, came, context)) return REL_STOPPED;
    }
  }
}

// GIL. Hands tuples on, as many as there is room for; negative: a Python error is set.
std::int64_t begin(Concurrent& self, const std::byte* records, std::size_t count) {
  const std::size_t stride = self.codec.schema().record_size();
  const ObjectRef room = ObjectRef::take(PyObject_CallMethod(self.calls.get(), "room", nullptr));
  const Py_ssize_t free = room ? PyLong_AsSsize_t(room.get()) : -1;
  const auto taken = std::min(count, static_cast<std::size_t>(std::max<Py_ssize_t>(free, 0)));
  if (taken == 0) return free < 0 ? -1 : 0;
  const ObjectRef tuples = ObjectRef::take(self.codec.decode(records, taken, stride));
  if (!tuples) return -1;
  self.under_way.fetch_add(taken, std::memory_order_relaxed);
  const ObjectRef begun = ObjectRef::take(PyObject_CallMethod(self.calls.get(), "begin", "O", tuples.get()));
  return begun ? static_cast<std::int64_t>(taken) : -1;
}

// Until something has come, for a moment at most. False: a Python error is set.
bool wait(Concurrent& self) { return static_cast<bool>(ObjectRef::take(PyObject_CallMethod(self.calls.get(), "wait", nullptr))); }

std::int64_t Concurrent::process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) {
  const std::size_t stride = codec.schema().record_size();
  auto left = static_cast<std::size_t>(n);
  // At the end of the input: until nothing is under way.
  while (left > 0 || (n == 0 && under_way.load(std::memory_order_relaxed) > 0)) {
    {
      const Entered entered(*this);
      const std::int64_t begun = left > 0 ? begin(*this, in, left) : 0;
      if (begun < 0 || (begun == 0 && !wait(*this))) {
        context->fail(failure->keep());
        return kFailedSomewhere;
      }
      in += static_cast<std::size_t>(begun) * stride;
      left -= static_cast<std::size_t>(begun);
    }
    if (const std::int64_t emitted = give(*this, context); emitted < 0) return emitted;
    if (context->stopping()) return REL_STOPPED;
  }
  return 0;
}

bool Concurrent::on_mark(Mark mark, rel_context* context) {
  // Without an order there is no place where a time belongs, and as a bar it would keep what is quick behind what is slow.
  if (under_way.load(std::memory_order_relaxed) == 0 || (mark.kind == MarkKind::Time && !ordered)) return true;
  marks.push_back(mark);
  under_way.fetch_add(1, std::memory_order_relaxed);
  const Entered entered(*this);
  if (!ObjectRef::take(PyObject_CallMethod(calls.get(), "bar", nullptr))) context->fail(failure->keep());
  return false;
}

void Concurrent::on_command(rel_context* context) {
  (void)give(*this, context);  // whoever has to stop knows it, and a failure has its message
}

}  // namespace

std::shared_ptr<Operator> make_concurrent(const ConcurrentCalls& described, std::shared_ptr<PythonFailure> failure) {
  if (described.input == nullptr || described.outputs.empty())
    throw std::invalid_argument("operator '" + described.name + "': needs an input schema and an output schema");
  return make_with_references<Concurrent>(described, std::move(failure));
}

}  // namespace rayelastic::python
