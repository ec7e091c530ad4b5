#include "rayelastic/operators/count_sink.hpp"

#include <utility>

namespace rayelastic {

namespace {

class CountSink final : public Operator {
 public:
  CountSink(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<std::atomic<std::int64_t>> counter)
      : Operator(std::move(name), {std::move(input)}, {}, REL_SINK), counter_(std::move(counter)) {}

  std::int64_t process(const std::byte*, std::int64_t n, std::byte*, std::int64_t, rel_context*) override {
    counter_->fetch_add(n, std::memory_order_relaxed);  // a figure: publishes nothing else
    return 0;
  }

 private:
  const std::shared_ptr<std::atomic<std::int64_t>> counter_;
};

}  // namespace

std::shared_ptr<Operator> make_count_sink(std::string name, std::shared_ptr<const Schema> input,
                                          std::shared_ptr<std::atomic<std::int64_t>> counter) {
  return std::make_shared<CountSink>(std::move(name), std::move(input), std::move(counter));
}

}  // namespace rayelastic
