#include "rayelastic/operators/split.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/operator/function.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/state/keyless_state.hpp"

namespace rayelastic {

namespace {

// Deals its records out to its output ports.
class SplitOperator : public Operator {
 public:
  SplitOperator(std::string name, const std::shared_ptr<const Schema>& schema, std::size_t ports)
      : Operator(std::move(name), {schema}, Schemas(ports, schema)), stride_(schema->record_size()), runs_(ports) {
    if (ports == 0) throw std::invalid_argument("operator '" + this->name() + "': a split needs an output port");
  }

 protected:
  [[nodiscard]] std::size_t stride() const noexcept { return stride_; }
  [[nodiscard]] std::size_t ports() const noexcept { return runs_.size(); }
  void put(std::size_t port, const std::byte* record) { runs_[port].insert(runs_[port].end(), record, record + stride_); }
  // Emits what was put.
  [[nodiscard]] std::int64_t emit(rel_context* context) {
    for (std::size_t port = 0; port < runs_.size(); ++port) {
      std::vector<std::byte>& run = runs_[port];
      if (run.empty()) continue;
      const bool ok = context->emit(static_cast<std::int32_t>(port), run.data(), static_cast<std::int64_t>(run.size() / stride_));
      run.clear();
      if (!ok) return REL_STOPPED;
    }
    return 0;
  }

 private:
  const std::size_t stride_;
  std::vector<std::vector<std::byte>> runs_;  // by port
};

// Keeps whose turn it is.
class RoundRobin final : public SplitOperator, public KeylessState {
 public:
  using SplitOperator::SplitOperator;

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    for (std::int64_t i = 0; i < n; ++i, in += stride()) {
      put(next_, in);
      next_ = next_ + 1 == ports() ? 0 : next_ + 1;
    }
    return emit(context);
  }
  [[nodiscard]] StateTable* state() override { return this; }

  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kSplit = 0x74696c7073;  // "split"
    return hash_of(ports() ^ kSplit);
  }
  void write(StateWriter& writer) const override { writer.number(next_); }
  void read(StateReader& reader, bool restored) override {
    const auto turn = reader.number<std::uint64_t>();
    if (turn >= ports()) throw StateError("exported state has the turn of an output that there isn't");
    if (restored) next_ = turn;
  }

 private:
  std::uint64_t next_ = 0;
};

class HashSplit final : public SplitOperator {
 public:
  HashSplit(std::string name, const std::shared_ptr<const Schema>& schema, std::span<const std::string> keys, std::size_t ports)
      : SplitOperator(std::move(name), schema, ports), extractor_(schema, keys) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    keys_.resize(static_cast<std::size_t>(n));
    extractor_.extract(in, keys_.size(), keys_.data());
    for (const StringView& key : keys_) {
      put(hash_of(key) % ports(), in);
      in += stride();
    }
    return emit(context);
  }

 private:
  KeyExtractor extractor_;
  std::vector<StringView> keys_;
};

class ChoiceSplit final : public SplitOperator {
 public:
  ChoiceSplit(const std::shared_ptr<Operator>& choice, std::size_t ports)
      : SplitOperator(choice->name(), choice->inputs().front(), ports), choice_(choice) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    chosen_.resize(static_cast<std::size_t>(n));
    const std::int64_t produced = choice_->process(in, n, reinterpret_cast<std::byte*>(chosen_.data()), n, context);
    if (produced < 0) return produced;
    for (std::int64_t i = 0; i < n; ++i, in += stride()) {
      const std::int64_t port = chosen_[static_cast<std::size_t>(i)];
      if (port < 0 || static_cast<std::size_t>(port) >= ports()) {
        context->fail("chose output " + std::to_string(port) + " of " + std::to_string(ports()));
        return REL_FAILED(i);
      }
      put(static_cast<std::size_t>(port), in);
    }
    return emit(context);
  }

 private:
  const std::shared_ptr<Operator> choice_;
  std::vector<std::int64_t> chosen_;
};

}  // namespace

std::shared_ptr<Operator> make_round_robin(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports) {
  return std::make_shared<RoundRobin>(std::move(name), schema, ports);
}

std::shared_ptr<Operator> make_hash_split(std::string name, std::shared_ptr<const Schema> schema, std::span<const std::string> keys,
                                          std::size_t ports) {
  return std::make_shared<HashSplit>(std::move(name), schema, keys, ports);
}

std::shared_ptr<Operator> make_choice_split(const std::shared_ptr<Operator>& choice, std::size_t ports) {
  if (!maps_to_int64(*choice) || choice->has_any(REL_KEYED | REL_NEEDS_TOKEN))
    throw std::invalid_argument("operator '" + choice->name() + "': a choice is a compiled function of a tuple that returns one int64");
  return std::make_shared<ChoiceSplit>(choice, ports);
}

}  // namespace rayelastic
