#include "rayelastic/operator/function.hpp"

#include <stdexcept>

#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

FunctionOperator::FunctionOperator(std::string name, Schemas inputs, Schemas outputs, std::uint32_t flags, Function function)
    : Operator(std::move(name), std::move(inputs), std::move(outputs), flags), function_(std::move(function)) {
  if (function_.process == nullptr) throw std::invalid_argument("operator '" + this->name() + "' has no function");
}

bool maps_to_int64(const Operator& op) noexcept {
  if (op.outputs().size() != 1 || !op.has_any(REL_ONE_TO_ONE)) return false;
  const Schema& output = *op.outputs().front();
  return output.fields().size() == 1 && output.fields()[0].type == Type::Int64 && output.record_size() == sizeof(std::int64_t);
}

void** FunctionOperator::lookup(const std::byte* in, std::int64_t n, const rel_context* context) {
  if (function_.keyed == nullptr) return nullptr;
  const auto count = static_cast<std::size_t>(n);
  if (slots_.size() < count) slots_.resize(count);
  function_.keyed->begin_run(context->watermark(), count);
  function_.keyed->lookup(in, count, slots_.data());
  return slots_.data();
}

void FunctionOperator::end_run() noexcept {
  if (function_.keyed != nullptr && function_.keyed->looks_for_changes()) function_.keyed->touch_if_changed();
}

StateTable* FunctionOperator::state() { return function_.keyed.get(); }

std::size_t FunctionOperator::longest_run() const {
  return function_.keyed != nullptr && function_.keyed->looks_for_changes() ? 1 : SIZE_MAX;
}

}  // namespace rayelastic
