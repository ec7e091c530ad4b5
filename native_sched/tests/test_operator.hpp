// An operator of a few functions, as most tests need one; others derive from Operator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/engine/scheduler.hpp"
#include "rayelastic/operator/function.hpp"

namespace rayelastic::check {

struct TestOperator {
  std::string name = {};
  rel_process process = nullptr;
  std::uint32_t flags = 0;
  std::shared_ptr<void> state = {};
  Schemas inputs = {};
  Schemas outputs = {};
  std::shared_ptr<KeyedState> keyed = {};
  std::uint64_t skip = 0;
  void (*interrupt)(void* state) = nullptr;
  CalledFor called_for = CalledFor::Unknown;
  bool takes_commands = false;
  ThreadingModel model = ThreadingModel::Manual;
  std::vector<Demand> demands = {};
  bool reentrant = false;

  [[nodiscard]] std::shared_ptr<Operator> make() const;
  [[nodiscard]] Placement placement() const { return {.model = model, .skip = skip}; }
};

class TestFunction final : public FunctionOperator {
 public:
  explicit TestFunction(const TestOperator& of)
      : FunctionOperator(of.name, of.inputs, of.outputs, of.flags,
                         {.process = of.process, .state = of.state, .keyed = of.keyed, .demands = of.demands, .reentrant = of.reentrant}),
        of_(of) {}

  void interrupt() override {
    if (of_.interrupt != nullptr) of_.interrupt(of_.state.get());
  }
  [[nodiscard]] bool takes_commands() const override { return of_.takes_commands; }
  [[nodiscard]] CalledFor called_for() const override { return of_.called_for; }

 private:
  const TestOperator of_;
};

inline std::shared_ptr<Operator> TestOperator::make() const { return std::make_shared<TestFunction>(*this); }

inline OperatorId install(Scheduler& scheduler, const TestOperator& op) { return scheduler.add_operator(op.make(), op.placement()); }
inline OperatorId install(Scheduler& scheduler, std::shared_ptr<Operator> op, Placement placement = {}) {
  return scheduler.add_operator(std::move(op), std::move(placement));
}

}  // namespace rayelastic::check
