// A function that fails returns the index of the tuple, but not what it had put into `out` for those before (abi.h). Where that is
// known (ONE_TO_ONE) it goes out. A function without state of keys is called again with the tuples before the failing one, and what
// had gone out already is left out. One with state can't be called twice: it is called tuple by tuple.
#include "rayelastic/operator/tolerant.hpp"

#include <stdexcept>
#include <utility>

#include "operator/between.hpp"
#include "rayelastic/operator/dead_letters.hpp"
#include "rayelastic/operator/recovery.hpp"

namespace rayelastic {

namespace {

constexpr std::int32_t kLettersPort = 1;

struct Tolerant {
  OperatorSpec inner;
  std::unique_ptr<DeadLetters> letters;
  Explain explain;
  std::size_t in_stride = 0;
  std::size_t out_stride = 0;
};

void put_aside(Tolerant& self, const std::byte* record, rel_context* context) {
  if (self.letters != nullptr) {
    self.letters->add(record, self.explain(record));
  } else {
    context->count(Tally::Skipped, 1);
  }
}

// Another answer goes out in the place of that of the function, but for the records of it that went out already. False: stop.
bool answer_or_put_aside(Tolerant& self, const std::byte* record, std::int64_t ahead, rel_context* context) {
  if (self.inner.recovery == nullptr || !self.inner.recovery->answers().ask(record)) {
    put_aside(self, record, context);
    return true;
  }
  context->count(Tally::Answered, 1);
  return self.inner.recovery->answers().submit(context, ahead);
}

std::int64_t in_runs(Tolerant& self, const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, void* state,
                     rel_context* context) {
  const bool one_to_one = (self.inner.flags & REL_ONE_TO_ONE) != 0;
  auto** slots = self.inner.keyed != nullptr ? static_cast<void**>(state) : nullptr;
  Between between(*context, out, self.out_stride);
  const auto call = [&](std::int64_t from, std::int64_t count) {
    void* of_call = slots != nullptr ? static_cast<void*>(slots + from) : self.inner.state.get();
    return self.inner.process(in + static_cast<std::size_t>(from) * self.in_stride, count, out, capacity, of_call, &between);
  };
  for (std::int64_t done = 0; done < n;) {
    between.begin(out, 0, 0);
    const std::int64_t produced = call(done, n - done);
    if (produced >= 0 || produced == REL_STOPPED) return produced;
    const std::int64_t failed = -1 - produced;
    if (failed >= n - done) return produced;
    std::int64_t kept = failed;
    std::int64_t ahead = between.flushed();
    if (!one_to_one && failed > 0) {
      between.begin(out, between.flushed(), 0);
      const std::int64_t again = call(done, failed);
      if (again < 0) return again;
      kept = between.settle(again);
      ahead = between.ahead();
    }
    if ((one_to_one || failed > 0) && !context->flush(kept)) return REL_STOPPED;
    if (!answer_or_put_aside(self, in + static_cast<std::size_t>(done + failed) * self.in_stride, ahead, context)) return REL_STOPPED;
    done += failed + 1;
  }
  return 0;
}

std::int64_t one_by_one(Tolerant& self, const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, void* state,
                        rel_context* context) {
  auto** slots = static_cast<void**>(state);
  Between between(*context, out, self.out_stride);
  std::int64_t used = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (used >= capacity - capacity / 2) {
      if (!context->flush(used)) return REL_STOPPED;
      used = 0;
    }
    const std::byte* record = in + static_cast<std::size_t>(i) * self.in_stride;
    std::byte* room = out + static_cast<std::size_t>(used) * self.out_stride;
    between.begin(room, 0, used);
    const std::int64_t produced = self.inner.process(record, 1, room, capacity - used, slots + i, &between);
    if (produced == REL_STOPPED) return produced;
    if (produced < 0) {
      put_aside(self, record, context);
      if (between.flushed() > 0) used = 0;
    } else {
      used = between.flushed() > 0 ? between.settle(produced) : used + produced;
    }
  }
  return used;
}

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& self = *static_cast<Tolerant*>(context->own_state());
  const bool together = self.inner.keyed == nullptr || (self.inner.flags & REL_ONE_TO_ONE) != 0;
  const std::int64_t produced =
      (together ? in_runs : one_by_one)(self, static_cast<const std::byte*>(in), n, static_cast<std::byte*>(out), capacity, state, context);
  if (produced >= 0 && self.letters != nullptr && !self.letters->submit(context, kLettersPort)) return REL_STOPPED;
  return produced;
}

}  // namespace

OperatorSpec make_tolerant(OperatorSpec inner, std::shared_ptr<const Schema> letters, Explain explain) {
  constexpr std::uint32_t kRefused = REL_SOURCE | REL_SINK | REL_NEEDS_TOKEN | REL_ON_FINISH;
  if ((inner.flags & kRefused) != 0 || !inner.further_inputs.empty() || !inner.further_outputs.empty() || !inner.demands.empty())
    throw std::invalid_argument("operator '" + inner.name + "': only a function of one port in and out can leave out what it fails on");
  auto self = std::make_shared<Tolerant>();
  OperatorSpec spec = inner;
  spec.process = process;
  spec.recovery = nullptr;
  spec.reentrant = false;
  spec.flags &= ~static_cast<std::uint32_t>(REL_ONE_TO_ONE | REL_IN_PLACE);
  if (letters != nullptr) {
    self->letters = std::make_unique<DeadLetters>(*inner.input, letters, inner.name);
    spec.further_outputs.push_back(std::move(letters));
  }
  self->explain = std::move(explain);
  self->in_stride = inner.input->record_size();
  self->out_stride = inner.output->record_size();
  self->inner = std::move(inner);
  spec.state = std::move(self);
  return spec;
}

}  // namespace rayelastic
