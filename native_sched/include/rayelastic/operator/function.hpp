// Operators that are a function with the signature of abi.h: compiled ones, above all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/abi.h"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// A function that returns one int64 for each record: a choice, a mark.
[[nodiscard]] bool maps_to_int64(const Operator& op) noexcept;

struct Function {
  rel_process process = nullptr;
  std::shared_ptr<void> state = {};        // handed to process as it is, unless REL_KEYED
  std::shared_ptr<KeyedState> keyed = {};  // with REL_KEYED
  std::vector<Demand> demands = {};
  std::shared_ptr<const Recovery> recovery = {};
  bool reentrant = false;
};

class FunctionOperator : public Operator {
 public:
  // Throws std::invalid_argument without a function.
  FunctionOperator(std::string name, Schemas inputs, Schemas outputs, std::uint32_t flags, Function function);

  [[nodiscard]] const Function& function() const noexcept { return function_; }
  // The slots of the records' keys; null without keys. They hold until the next lookup.
  [[nodiscard]] void** lookup(const std::byte* in, std::int64_t n, const rel_context* context);
  // `slots`: those of `in`, by lookup.
  [[nodiscard]] std::int64_t call(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity, void** slots,
                                  rel_context* context) {
    return function_.process(in, n, out, capacity, slots != nullptr ? static_cast<void*>(slots) : function_.state.get(), context);
  }
  // After the calls for what was looked up.
  void end_run() noexcept;

  [[nodiscard]] std::int64_t process(const std::byte* in, std::int64_t n, std::byte* out, std::int64_t capacity,
                                     rel_context* context) override {
    if (function_.keyed == nullptr) [[likely]]
      return call(in, n, out, capacity, nullptr, context);
    const std::int64_t result = call(in, n, out, capacity, lookup(in, n, context), context);
    end_run();
    return result;
  }
  [[nodiscard]] StateTable* state() override;
  [[nodiscard]] KeyedState* keyed_state() override { return function_.keyed.get(); }
  [[nodiscard]] const std::vector<Demand>& demands() const override { return function_.demands; }
  [[nodiscard]] const Recovery* recovery() const override { return function_.recovery.get(); }
  [[nodiscard]] bool is_reentrant() const override { return function_.reentrant; }
  [[nodiscard]] bool bounds_runs() const override { return longest_run() != SIZE_MAX; }
  [[nodiscard]] std::size_t longest_run() const override;

 private:
  const Function function_;
  std::vector<void*> slots_ = std::vector<void*>(1);  // never empty: null says that there are no keys
};

}  // namespace rayelastic
