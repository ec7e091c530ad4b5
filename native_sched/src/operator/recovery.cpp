// What the function had made of the records before the failing one is known where each makes one (ONE_TO_ONE) and where a FILTER says
// so (rel_kept); others are called again with those records, and what had gone out already is left out.
#include "rayelastic/operator/recovery.hpp"

#include <stdexcept>
#include <utility>

#include "operator/between.hpp"
#include "rayelastic/operator/function.hpp"

namespace rayelastic {

std::int64_t Recovery::go_on(Operator& op, Call call, rel_context* context) const {
  const std::lock_guard guard(mutex_);
  const std::size_t in_stride = op.inputs().front()->record_size();
  const bool in_place = call.in == call.out;
  Between between(*context, call.out, op.outputs().front()->record_size());
  const auto at = [&](std::int64_t record) { return call.in + static_cast<std::size_t>(record) * in_stride; };
  const auto out_of = [&](std::int64_t record) { return in_place ? const_cast<std::byte*>(at(record)) : call.out; };
  const auto run = [&](std::int64_t from, std::int64_t count, std::int64_t skipped) {
    between.begin(out_of(from), skipped, 0);
    const std::int64_t capacity = in_place ? count : call.capacity;
    return op.process(at(from), count, out_of(from), capacity, &between);
  };
  std::int64_t done = 0;
  while (true) {
    std::int64_t made = op.has_any(REL_ONE_TO_ONE) ? call.failed : call.kept;
    std::int64_t ahead = 0;  // records of the failing one that went out already
    if (!op.has_any(REL_ONE_TO_ONE | REL_FILTER)) {
      made = 0, ahead = call.flushed;
      if (call.failed > 0) {
        made = run(done, call.failed, call.flushed);
        if (made < 0) return made;
        made = between.settle(made);
        ahead = between.ahead();
      }
    }
    if (made > 0 && !context->emit(0, out_of(done), made)) return REL_STOPPED;
    done += call.failed;
    if (!answers_->ask(at(done))) return REL_FAILED(done);
    context->count(Tally::Answered, 1);
    if (!answers_->submit(context, ahead)) return REL_STOPPED;
    if (++done == call.n) return 0;
    const std::int64_t produced = run(done, call.n - done, 0);
    if (produced == REL_STOPPED) return produced;
    if (produced >= 0) return produced == 0 || context->emit(0, out_of(done), produced) ? 0 : REL_STOPPED;
    call.failed = -1 - produced, call.flushed = between.flushed(), call.kept = between.kept_records();
    if (call.failed >= call.n - done) return produced;
  }
}

std::shared_ptr<Operator> make_recovering(const Operator& inner, std::shared_ptr<Answers> answers) {
  constexpr std::uint32_t kRejected = REL_SOURCE | REL_SINK | REL_NEEDS_TOKEN | REL_ON_FINISH | REL_KEYED;
  const auto* const op = dynamic_cast<const FunctionOperator*>(&inner);
  if (op == nullptr || op->has_any(kRejected) || op->inputs().size() != 1 || op->outputs().size() != 1 || !op->demands().empty())
    throw std::invalid_argument("operator '" + inner.name() +
                                "': only a function of one port in and out, without keys, can be called again");
  Function function = op->function();
  function.recovery = std::make_shared<const Recovery>(std::move(answers));
  return std::make_shared<FunctionOperator>(op->name(), op->inputs(), op->outputs(), op->flags(), std::move(function));
}

}  // namespace rayelastic
