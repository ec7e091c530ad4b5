#include "rayelastic/operators/split.hpp"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/state/keyless_state.hpp"

namespace rayelastic {

namespace {

// Of what it has only the turn goes from one run of a job to the next.
struct Split final : KeylessState {
  std::size_t stride = 0;
  std::vector<std::vector<std::byte>> runs;  // by port
  std::uint64_t next = 0;                    // in turn
  std::optional<KeyExtractor> extractor;     // by hash
  std::vector<StringView> keys;
  OperatorSpec choice;  // by function
  std::vector<std::int64_t> chosen;

  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kSplit = 0x74696c7073;  // "split"
    return hash_of(runs.size() ^ kSplit);
  }
  void write(StateWriter& writer) const override { writer.number(next); }
  void read(StateReader& reader, bool restored) override {
    const auto turn = reader.number<std::uint64_t>();
    if (turn >= runs.size()) throw StateError("exported state has the turn of an output that there isn't");
    if (restored) next = turn;
  }
};

std::int64_t give(Split& self, rel_context* context) {
  for (std::size_t port = 0; port < self.runs.size(); ++port) {
    std::vector<std::byte>& run = self.runs[port];
    if (run.empty()) continue;
    const bool ok = context->emit(static_cast<std::int32_t>(port), run.data(), static_cast<std::int64_t>(run.size() / self.stride));
    run.clear();
    if (!ok) return REL_STOPPED;
  }
  return 0;
}

void put(Split& self, std::size_t port, const std::byte* record) {
  std::vector<std::byte>& run = self.runs[port];
  run.insert(run.end(), record, record + self.stride);
}

std::int64_t in_turn(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Split*>(state);
  const auto* record = static_cast<const std::byte*>(in);
  for (std::int64_t i = 0; i < n; ++i, record += self.stride) {
    put(self, self.next, record);
    self.next = self.next + 1 == self.runs.size() ? 0 : self.next + 1;
  }
  return give(self, context);
}

std::int64_t by_hash(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Split*>(state);
  const auto* record = static_cast<const std::byte*>(in);
  self.keys.resize(static_cast<std::size_t>(n));
  self.extractor->extract(record, static_cast<std::size_t>(n), self.keys.data());
  for (std::int64_t i = 0; i < n; ++i, record += self.stride)
    put(self, hash_of(self.keys[static_cast<std::size_t>(i)]) % self.runs.size(), record);
  return give(self, context);
}

std::int64_t by_choice(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Split*>(state);
  const auto* record = static_cast<const std::byte*>(in);
  self.chosen.resize(static_cast<std::size_t>(n));
  const std::int64_t produced = self.choice.process(in, n, self.chosen.data(), n, self.choice.state.get(), context);
  if (produced < 0) return produced;
  for (std::int64_t i = 0; i < n; ++i, record += self.stride) {
    const std::int64_t port = self.chosen[static_cast<std::size_t>(i)];
    if (port < 0 || static_cast<std::size_t>(port) >= self.runs.size()) {
      context->fail("chose output " + std::to_string(port) + " of " + std::to_string(self.runs.size()));
      return REL_FAILED(i);
    }
    put(self, static_cast<std::size_t>(port), record);
  }
  return give(self, context);
}

OperatorSpec make(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports, rel_process process,
                  std::shared_ptr<Split> self) {
  if (ports == 0) throw std::invalid_argument("operator '" + name + "': a split needs an output port");
  self->stride = schema->record_size();
  self->runs.resize(ports);
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.state = std::move(self);
  spec.input = schema;
  spec.output = schema;
  spec.further_outputs.assign(ports - 1, schema);
  return spec;
}

}  // namespace

OperatorSpec make_round_robin(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports) {
  auto self = std::make_shared<Split>();
  OperatorSpec spec = make(std::move(name), std::move(schema), ports, in_turn, self);
  spec.store = std::move(self);
  return spec;
}

OperatorSpec make_hash_split(std::string name, std::shared_ptr<const Schema> schema, std::span<const std::string> keys, std::size_t ports) {
  auto self = std::make_shared<Split>();
  self->extractor.emplace(schema, keys);
  return make(std::move(name), std::move(schema), ports, by_hash, std::move(self));
}

OperatorSpec make_choice_split(OperatorSpec choice, std::size_t ports) {
  const bool fits = choice.output != nullptr && choice.output->fields().size() == 1 && choice.output->fields()[0].type == Type::Int64 &&
                    choice.output->record_size() == sizeof(std::int64_t) && (choice.flags & REL_ONE_TO_ONE) != 0 &&
                    (choice.flags & (REL_KEYED | REL_NEEDS_TOKEN)) == 0;
  if (!fits)
    throw std::invalid_argument("operator '" + choice.name + "': a choice is a compiled function of a tuple that returns one int64");
  auto self = std::make_shared<Split>();
  std::shared_ptr<const Schema> schema = choice.input;
  std::string name = choice.name;
  self->choice = std::move(choice);
  return make(std::move(name), std::move(schema), ports, by_choice, std::move(self));
}

}  // namespace rayelastic
