// Puts what channels give in the order of its turns; see channels.hpp.
#include <cstdint>
#include <map>
#include <stdexcept>
#include <vector>

#include "operator/record_buffer.hpp"
#include "rayelastic/operators/channels.hpp"

namespace rayelastic {

namespace {

struct Turn {
  std::size_t channel = 0;
  std::uint64_t end = 0;  // in the channel's buffer
  std::vector<Mark> behind = {};
};

struct InTurn {
  std::vector<RecordBuffer> channels;
  std::map<std::int64_t, Turn> complete = {};  // by number
  std::int64_t next = 0;
  std::vector<Chunk*> chunks = {};
};

bool give(InTurn& self, RecordBuffer& records, std::uint64_t end, rel_context* context) {
  const auto count = static_cast<std::size_t>(end - records.begin());
  if (count == 0) return true;
  self.chunks.clear();
  records.chunks_of(count, self.chunks);
  for (Chunk* chunk : self.chunks) context->attach(chunk);
  const bool ok = context->emit(0, records.front(count).records, static_cast<std::int64_t>(count));
  records.pop(count);
  return ok;
}

std::int64_t process(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& self = *static_cast<InTurn*>(state);
  if (n == 0) {  // the end
    for (RecordBuffer& records : self.channels) {
      if (!give(self, records, records.end(), context)) return REL_STOPPED;
    }
    return 0;
  }
  const auto count = static_cast<std::size_t>(n);
  self.channels[static_cast<std::size_t>(context->port())].append({static_cast<const std::byte*>(in), count, 0, context->input_chunks()},
                                                                  count);
  return 0;
}

// What samples the latency stays behind the records that it came behind. True: they have been given.
bool passes(InTurn& self, std::size_t channel, Mark mark) {
  for (auto at = self.complete.rbegin(); at != self.complete.rend(); ++at) {
    if (at->second.channel != channel) continue;
    at->second.behind.push_back(mark);
    return false;
  }
  return true;
}

bool marked(void* state, Mark mark, rel_context* context) {
  auto& self = *static_cast<InTurn*>(state);
  const auto channel = static_cast<std::size_t>(context->port());
  if (mark.kind == MarkKind::Time) return passes(self, channel, mark);
  if (mark.kind != MarkKind::Turn) return true;
  self.complete[mark.value] = {channel, self.channels[channel].end()};
  for (auto at = self.complete.begin(); at != self.complete.end() && at->first == self.next; at = self.complete.erase(at), ++self.next) {
    if (!give(self, self.channels[at->second.channel], at->second.end, context)) break;
    for (const Mark behind : at->second.behind) context->mark(behind);
  }
  return false;
}

}  // namespace

OperatorSpec make_in_turn(std::string name, std::shared_ptr<const Schema> schema, std::size_t channels) {
  if (channels == 0) throw std::invalid_argument("operator '" + name + "': there are no channels to put in order");
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = process;
  spec.marked = marked;
  spec.flags = REL_ON_FINISH;
  auto self = std::make_shared<InTurn>();
  for (std::size_t channel = 0; channel < channels; ++channel) self->channels.emplace_back(schema->record_size());
  spec.state = std::move(self);
  spec.input = schema;
  spec.further_inputs.assign(channels - 1, schema);
  spec.output = std::move(schema);
  return spec;
}

}  // namespace rayelastic
