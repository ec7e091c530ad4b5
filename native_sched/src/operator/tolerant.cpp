// A function that fails returns the index of the tuple, but not what it had put into `out` for those before (abi.h). Where that is
// known (ONE_TO_ONE) it goes out. A function without state of keys is called again with the tuples before the failing one, and what
// had gone out already is left out. One with state can't be called twice: it is called tuple by tuple.
#include "rayelastic/operator/tolerant.hpp"

#include <stdexcept>
#include <utility>

#include "operator/between.hpp"
#include "rayelastic/operator/dead_letters.hpp"
#include "rayelastic/operator/function.hpp"
#include "rayelastic/operator/recovery.hpp"

namespace rayelastic {

namespace {

constexpr std::int32_t kLettersPort = 1;

class TolerantOperator final : public Operator {
 public:
  TolerantOperator(std::shared_ptr<FunctionOperator> inner, const std::shared_ptr<const Schema>& letters, Explain explain)
      : Operator(inner->name(), inner->inputs(), outputs_of(*inner, letters),
                 inner->flags() & ~static_cast<std::uint32_t>(REL_ONE_TO_ONE | REL_IN_PLACE)),
        inner_(std::move(inner)),
        explain_(std::move(explain)),
        in_stride_(inputs().front()->record_size()),
        out_stride_(outputs().front()->record_size()) {
    if (letters != nullptr) letters_ = std::make_unique<DeadLetters>(*inputs().front(), letters, name());
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, rel_context* context) override {
    void** const slots = inner_->lookup(in, n, context);
    const bool together = slots == nullptr || inner_->has_any(REL_ONE_TO_ONE);
    const std::int64_t produced =
        together ? call_runs(in, n, out, capacity, slots, context) : call_each(in, n, out, capacity, slots, context);
    inner_->end_run();
    if (produced >= 0 && letters_ != nullptr && !letters_->submit(context, kLettersPort)) return REL_STOPPED;
    return produced;
  }
  [[nodiscard]] StateTable* state() override { return inner_->state(); }
  [[nodiscard]] KeyedState* keyed_state() override { return inner_->keyed_state(); }
  [[nodiscard]] bool bounds_runs() const override { return inner_->bounds_runs(); }
  [[nodiscard]] std::size_t longest_run() const override { return inner_->longest_run(); }

 private:
  static Schemas outputs_of(const Operator& inner, const std::shared_ptr<const Schema>& letters) {
    Schemas outputs = inner.outputs();
    if (letters != nullptr) outputs.push_back(letters);
    return outputs;
  }

  void put_aside(const std::byte* record, rel_context* context) {
    if (letters_ != nullptr) {
      letters_->add(record, explain_(record));
    } else {
      context->count(Tally::Skipped, 1);
    }
  }

  // Another answer replaces that of the function, but for the records of it that went out already. False: stop.
  [[nodiscard]] bool answer_or_put_aside(const std::byte* record, std::int64_t ahead, rel_context* context) {
    const Recovery* const recovery = inner_->recovery();
    if (recovery == nullptr || !recovery->answers().ask(record)) {
      put_aside(record, context);
      return true;
    }
    context->count(Tally::Answered, 1);
    return recovery->answers().submit(context, ahead);
  }

  [[nodiscard]] std::int64_t call_runs(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, void** slots,
                                       rel_context* context) {
    const bool one_to_one = inner_->has_any(REL_ONE_TO_ONE);
    Between between(*context, out, out_stride_);
    const auto call = [&](std::int64_t from, std::int64_t count) {
      return inner_->call(in + static_cast<std::size_t>(from) * in_stride_, count, out, capacity, slots != nullptr ? slots + from : nullptr,
                          &between);
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
      if (!answer_or_put_aside(in + static_cast<std::size_t>(done + failed) * in_stride_, ahead, context)) return REL_STOPPED;
      done += failed + 1;
    }
    return 0;
  }

  [[nodiscard]] std::int64_t call_each(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, void** slots,
                                       rel_context* context) {
    Between between(*context, out, out_stride_);
    std::int64_t used = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (used >= capacity - capacity / 2) {
        if (!context->flush(used)) return REL_STOPPED;
        used = 0;
      }
      const std::byte* record = in + static_cast<std::size_t>(i) * in_stride_;
      std::byte* room = out + static_cast<std::size_t>(used) * out_stride_;
      between.begin(room, 0, used);
      const std::int64_t produced = inner_->call(record, 1, room, capacity - used, slots + i, &between);
      if (produced == REL_STOPPED) return produced;
      if (produced < 0) {
        put_aside(record, context);
        if (between.flushed() > 0) used = 0;
      } else {
        used = between.flushed() > 0 ? between.settle(produced) : used + produced;
      }
    }
    return used;
  }

  const std::shared_ptr<FunctionOperator> inner_;
  const Explain explain_;
  const std::size_t in_stride_;
  const std::size_t out_stride_;
  std::unique_ptr<DeadLetters> letters_;
};

}  // namespace

std::shared_ptr<Operator> make_tolerant(const std::shared_ptr<Operator>& inner, std::shared_ptr<const Schema> letters, Explain explain) {
  constexpr std::uint32_t kRejected = REL_SOURCE | REL_SINK | REL_NEEDS_TOKEN | REL_ON_FINISH;
  auto function = std::dynamic_pointer_cast<FunctionOperator>(inner);
  if (function == nullptr || inner->has_any(kRejected) || inner->inputs().size() != 1 || inner->outputs().size() != 1 ||
      !inner->demands().empty())
    throw std::invalid_argument("operator '" + inner->name() + "': only a function of one port in and out can leave out what it fails on");
  return std::make_shared<TolerantOperator>(std::move(function), letters, std::move(explain));
}

}  // namespace rayelastic
