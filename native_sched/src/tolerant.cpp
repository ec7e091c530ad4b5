// A function that fails returns the index of the tuple, but not what it had put into `out` for those before (abi.h). Where that is
// known (ONE_TO_ONE) it goes out. A function without state of keys is called again with the tuples before the failing one, and what
// had gone out already is left out. One with state can't be called twice: it is called tuple by tuple.
#include "rayelastic/tolerant.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "rayelastic/dead_letters.hpp"

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

// Stands between a function and the engine: it knows what was flushed, and can leave out what was flushed before.
class Between final : public rel_context {
 public:
  Between(rel_context& context, std::byte* out, std::size_t stride) : context_(context), out_(out), stride_(stride) {}

  // What the function is given as `out` from now on, how many of its next records went out already, and how many of tuples before
  // wait at the front of the engine's `out`.
  void begin(std::byte* out, std::int64_t skipped, std::int64_t waiting) {
    given_ = out, skipped_ = skipped, waiting_ = waiting, flushed_ = 0;
  }
  [[nodiscard]] std::int64_t flushed() const noexcept { return flushed_; }
  // Moves what the function left in its `out` to the front of the engine's; returns how many are left of them.
  [[nodiscard]] std::int64_t settle(std::int64_t n) {
    const std::int64_t left_out = std::min(n, skipped_);
    skipped_ -= left_out;
    const std::byte* from = given_ + static_cast<std::size_t>(left_out) * stride_;
    if (from != out_) std::memmove(out_, from, static_cast<std::size_t>(n - left_out) * stride_);
    return n - left_out;
  }

  bool flush(std::int64_t n) override {
    flushed_ += n;
    const std::int64_t waiting = std::exchange(waiting_, 0);
    return (waiting == 0 || context_.flush(waiting)) && context_.flush(settle(n));
  }
  void finish() override { context_.finish(); }
  void* allocate(std::size_t bytes) override { return context_.allocate(bytes); }
  void attach(Chunk* chunk) override { context_.attach(chunk); }
  bool keep_text(void* field, const char* text, std::uint32_t bytes) override { return context_.keep_text(field, text, bytes); }
  void fail(std::string message) override { context_.fail(std::move(message)); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return context_.input_chunks(); }
  void mark(Mark mark) override { context_.mark(mark); }
  bool emit(std::int32_t port, const void* records, std::int64_t n) override { return context_.emit(port, records, n); }
  [[nodiscard]] bool stopping() const override { return context_.stopping(); }

 private:
  rel_context& context_;
  std::byte* const out_;
  const std::size_t stride_;
  std::byte* given_ = nullptr;
  std::int64_t skipped_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t flushed_ = 0;
};

void put_aside(Tolerant& self, const std::byte* record) {
  if (self.letters != nullptr) self.letters->add(record, self.explain(record));
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
    if (!one_to_one && failed > 0) {
      between.begin(out, between.flushed(), 0);
      const std::int64_t again = call(done, failed);
      if (again < 0) return again;
      kept = between.settle(again);
    }
    if ((one_to_one || failed > 0) && !context->flush(kept)) return REL_STOPPED;
    put_aside(self, in + static_cast<std::size_t>(done + failed) * self.in_stride);
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
      put_aside(self, record);
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
