// What the function had made of the records before the failing one is known where each makes one (ONE_TO_ONE) and where a FILTER says
// so (rel_kept); others are called again with those records, and what had gone out already is left out.
#include "rayelastic/operator/recovery.hpp"

#include <stdexcept>
#include <utility>

#include "operator/between.hpp"

namespace rayelastic {

std::int64_t Recovery::go_on(const OperatorSpec& spec, Call call, rel_context* context) const {
  const std::lock_guard guard(mutex_);
  const std::size_t in_stride = spec.input->record_size();
  const bool in_place = call.in == call.out;
  Between between(*context, call.out, spec.output->record_size());
  const auto at = [&](std::int64_t record) { return call.in + static_cast<std::size_t>(record) * in_stride; };
  const auto out_of = [&](std::int64_t record) { return in_place ? const_cast<std::byte*>(at(record)) : call.out; };
  const auto run = [&](std::int64_t from, std::int64_t count, std::int64_t skipped) {
    between.begin(out_of(from), skipped, 0);
    const std::int64_t capacity = in_place ? count : call.capacity;
    return spec.process(at(from), count, out_of(from), capacity, spec.state.get(), &between);
  };
  std::int64_t done = 0;
  while (true) {
    std::int64_t made = (spec.flags & REL_ONE_TO_ONE) != 0 ? call.failed : call.kept;
    std::int64_t ahead = 0;  // records of the failing one that went out already
    if ((spec.flags & (REL_ONE_TO_ONE | REL_FILTER)) == 0) {
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

OperatorSpec make_recovering(OperatorSpec inner, std::shared_ptr<Answers> answers) {
  constexpr std::uint32_t kRefused = REL_SOURCE | REL_SINK | REL_NEEDS_TOKEN | REL_ON_FINISH | REL_KEYED;
  if ((inner.flags & kRefused) != 0 || !inner.further_inputs.empty() || !inner.further_outputs.empty() || !inner.demands.empty())
    throw std::invalid_argument("operator '" + inner.name + "': only a function of one port in and out, without keys, can be called again");
  inner.recovery = std::make_shared<const Recovery>(std::move(answers));
  return inner;
}

}  // namespace rayelastic
