// Puts what channels give in the order of its turns; see channels.hpp.
#include <algorithm>
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

class InTurnOperator final : public Operator {
 public:
  InTurnOperator(std::string name, const std::shared_ptr<const Schema>& schema, std::size_t channels)
      : Operator(std::move(name), Schemas(channels, schema), {schema}, REL_ON_FINISH) {
    for (std::size_t channel = 0; channel < channels; ++channel) channels_.emplace_back(schema->record_size());
  }

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    const auto count = static_cast<std::size_t>(n);
    RecordBuffer& channel = channels_[static_cast<std::size_t>(context->port())];
    channel.append({in, count, channel.stride(), context->input_chunks()}, count);
    return 0;
  }
  std::int64_t finish(std::byte*, std::int64_t, rel_context* context) override {
    const auto emit_all = [&](RecordBuffer& records) { return emit(records, records.end(), context); };
    return std::ranges::all_of(channels_, emit_all) ? 0 : REL_STOPPED;
  }
  bool on_mark(Mark mark, rel_context* context) override {
    const auto channel = static_cast<std::size_t>(context->port());
    if (mark.kind == MarkKind::Time) return passes(channel, mark);
    if (mark.kind != MarkKind::Turn) return true;
    complete_[mark.value] = {channel, channels_[channel].end()};
    for (auto at = complete_.begin(); at != complete_.end() && at->first == next_; at = complete_.erase(at), ++next_) {
      if (!emit(channels_[at->second.channel], at->second.end, context)) break;
      for (const Mark behind : at->second.behind) context->mark(behind);
    }
    return false;
  }

 private:
  [[nodiscard]] bool emit(RecordBuffer& records, std::uint64_t end, rel_context* context) {
    const auto count = static_cast<std::size_t>(end - records.begin());
    if (count == 0) return true;
    chunks_.clear();
    records.chunks_of(count, chunks_);
    for (Chunk* chunk : chunks_) context->attach(chunk);
    const bool ok = context->emit(0, records.front(count).records, static_cast<std::int64_t>(count));
    records.pop(count);
    return ok;
  }
  // A latency sample stays behind the records that it came behind. True: these have been emitted.
  [[nodiscard]] bool passes(std::size_t channel, Mark mark) {
    for (auto at = complete_.rbegin(); at != complete_.rend(); ++at) {
      if (at->second.channel != channel) continue;
      at->second.behind.push_back(mark);
      return false;
    }
    return true;
  }

  std::vector<RecordBuffer> channels_;
  std::map<std::int64_t, Turn> complete_;  // by number
  std::int64_t next_ = 0;
  std::vector<Chunk*> chunks_;
};

}  // namespace

std::shared_ptr<Operator> make_in_turn(std::string name, std::shared_ptr<const Schema> schema, std::size_t channels) {
  if (channels == 0) throw std::invalid_argument("operator '" + name + "': there are no channels to put in order");
  return std::make_shared<InTurnOperator>(std::move(name), schema, channels);
}

}  // namespace rayelastic
