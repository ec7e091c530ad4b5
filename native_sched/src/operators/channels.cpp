#include "rayelastic/operators/channels.hpp"

#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/key_extractor.hpp"

namespace rayelastic {

namespace {

struct Channels {
  std::size_t stride = 0;
  std::shared_ptr<ChannelWidth> width;
  bool ordered = false;
  std::size_t next = 0;   // channel
  std::size_t last = 0;   // that records were given to
  std::int64_t turn = 0;  // to be given out
  std::optional<KeyExtractor> extractor = {};
  std::vector<StringView> keys = {};
};

bool give(Channels& self, std::size_t channel, const std::byte* records, std::size_t count, rel_context* context) {
  const auto port = static_cast<std::int32_t>(channel);
  self.last = channel;
  if (!context->emit(port, records, static_cast<std::int64_t>(count))) return false;
  return !self.ordered || context->mark_output(port, {MarkKind::Turn, self.turn++});
}

// The next one in turn; where order doesn't matter, the next that has room, if any has (L02).
std::size_t choose(Channels& self, std::size_t width, const rel_context* context) {
  const std::size_t first = self.next < width ? self.next : 0;
  std::size_t chosen = first;
  for (std::size_t tried = 0; !self.ordered && tried < width; ++tried) {
    const std::size_t channel = (first + tried) % width;
    if (context->room(static_cast<std::int32_t>(channel)) == 0) continue;
    chosen = channel;
    break;
  }
  self.next = chosen + 1;
  return chosen;
}

// In even shares, as far as they fit: who waits for one channel leaves the others without work.
std::int64_t in_turn(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Channels*>(state);
  const auto* record = static_cast<const std::byte*>(in);
  const std::size_t width = self.width->active();
  const std::size_t share = (static_cast<std::size_t>(n) + width - 1) / width;
  for (auto left = static_cast<std::size_t>(n); left > 0;) {
    const std::size_t channel = choose(self, width, context);
    const std::size_t room = std::max<std::size_t>(context->room(static_cast<std::int32_t>(channel)), 1);
    const std::size_t count = std::min({left, share, room});
    if (!give(self, channel, record, count, context)) return REL_STOPPED;
    record += count * self.stride;
    left -= count;
  }
  return 0;
}

std::int64_t by_hash(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<Channels*>(state);
  const auto* records = static_cast<const std::byte*>(in);
  const auto count = static_cast<std::size_t>(n);
  self.keys.resize(count);
  self.extractor->extract(records, count, self.keys.data());
  const auto channel_of = [&](std::size_t i) { return hash_of(self.keys[i]) % self.width->channels(); };
  for (std::size_t begin = 0; begin < count;) {
    const std::size_t channel = channel_of(begin);
    std::size_t end = begin + 1;
    while (end < count && channel_of(end) == channel) ++end;
    if (!give(self, channel, records + begin * self.stride, end - begin, context)) return REL_STOPPED;
    begin = end;
  }
  return 0;
}

// What samples the latency goes where the last records went: a channel that isn't in use has none.
bool marked(void* state, Mark mark, rel_context* context) {
  const auto& self = *static_cast<const Channels*>(state);
  if (mark.kind != MarkKind::Time) return true;
  (void)context->mark_output(static_cast<std::int32_t>(self.last), mark);  // whoever has to stop knows it
  return false;
}

OperatorSpec make(std::string name, std::shared_ptr<const Schema> schema, rel_process process, std::shared_ptr<Channels> self) {
  self->stride = schema->record_size();
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.marked = marked;
  spec.input = schema;
  spec.output = schema;
  spec.further_outputs.assign(self->width->channels() - 1, schema);
  spec.state = std::move(self);
  return spec;
}

}  // namespace

OperatorSpec make_channels(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<ChannelWidth> width, bool ordered) {
  return make(std::move(name), std::move(schema), in_turn,
              std::make_shared<Channels>(Channels{.width = std::move(width), .ordered = ordered}));
}

OperatorSpec make_keyed_channels(std::string name, std::shared_ptr<const Schema> schema, std::span<const std::string> keys,
                                 std::size_t channels) {
  if (keys.empty()) throw std::invalid_argument("operator '" + name + "': keyed channels need a key field");
  auto self = std::make_shared<Channels>(Channels{.width = std::make_shared<ChannelWidth>(channels, channels), .ordered = true});
  self->extractor.emplace(schema, keys);
  return make(std::move(name), std::move(schema), by_hash, std::move(self));
}

}  // namespace rayelastic
