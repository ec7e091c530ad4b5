#include "rayelastic/operators/channels.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/key_extractor.hpp"

namespace rayelastic {

namespace {

class ChannelsOperator : public Operator {
 public:
  ChannelsOperator(std::string name, const std::shared_ptr<const Schema>& schema, std::size_t channels, bool ordered)
      : Operator(std::move(name), {schema}, Schemas(channels, schema)), stride_(schema->record_size()), ordered_(ordered) {}

  // A latency sample goes where the last records went: a channel that isn't in use has none.
  bool on_mark(Mark mark, rel_context* context) override {
    if (mark.kind != MarkKind::Time) return true;
    (void)context->mark_output(static_cast<std::int32_t>(last_), mark);  // whoever has to stop knows it
    return false;
  }

 protected:
  [[nodiscard]] bool emit(std::size_t channel, const std::byte* records, std::size_t count, rel_context* context) {
    const auto port = static_cast<std::int32_t>(channel);
    last_ = channel;
    if (!context->emit(port, records, static_cast<std::int64_t>(count))) return false;
    return !ordered_ || context->mark_output(port, {MarkKind::Turn, turn_++});
  }

  const std::size_t stride_;
  const bool ordered_;

 private:
  std::size_t last_ = 0;   // the channel of the last records
  std::int64_t turn_ = 0;  // the next one
};

// Even shares, as far as there is room: who waits for one channel leaves the others without work.
class RotatingChannels final : public ChannelsOperator {
 public:
  RotatingChannels(std::string name, const std::shared_ptr<const Schema>& schema, std::shared_ptr<ChannelWidth> width, bool ordered)
      : ChannelsOperator(std::move(name), schema, width->channels(), ordered), width_(std::move(width)) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    const std::size_t width = width_->active();
    const std::size_t share = (static_cast<std::size_t>(n) + width - 1) / width;
    for (auto left = static_cast<std::size_t>(n); left > 0;) {
      const std::size_t channel = choose(width, context);
      const std::size_t room = std::max<std::size_t>(context->room(static_cast<std::int32_t>(channel)), 1);
      const std::size_t count = std::min({left, share, room});
      if (!emit(channel, in, count, context)) return REL_STOPPED;
      in += count * stride_;
      left -= count;
    }
    return 0;
  }

 private:
  // The next one in turn; where order doesn't matter, the next that has room, if any has (L02).
  [[nodiscard]] std::size_t choose(std::size_t width, const rel_context* context) {
    const std::size_t first = next_ < width ? next_ : 0;
    std::size_t chosen = first;
    for (std::size_t tried = 0; !ordered_ && tried < width; ++tried) {
      const std::size_t channel = (first + tried) % width;
      if (context->room(static_cast<std::int32_t>(channel)) == 0) continue;
      chosen = channel;
      break;
    }
    next_ = chosen + 1;
    return chosen;
  }

  const std::shared_ptr<ChannelWidth> width_;
  std::size_t next_ = 0;  // channel
};

class KeyedChannels final : public ChannelsOperator {
 public:
  KeyedChannels(std::string name, const std::shared_ptr<const Schema>& schema, std::span<const std::string> keys, std::size_t channels)
      : ChannelsOperator(std::move(name), schema, channels, true), extractor_(schema, keys) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    const auto count = static_cast<std::size_t>(n);
    keys_.resize(count);
    extractor_.extract(in, count, keys_.data());
    const auto channel_of = [&](std::size_t i) { return hash_of(keys_[i]) % outputs().size(); };
    for (std::size_t begin = 0; begin < count;) {
      const std::size_t channel = channel_of(begin);
      std::size_t end = begin + 1;
      while (end < count && channel_of(end) == channel) ++end;
      if (!emit(channel, in + begin * stride_, end - begin, context)) return REL_STOPPED;
      begin = end;
    }
    return 0;
  }

 private:
  KeyExtractor extractor_;
  std::vector<StringView> keys_;
};

}  // namespace

std::shared_ptr<Operator> make_channels(std::string name, std::shared_ptr<const Schema> schema, std::shared_ptr<ChannelWidth> width,
                                        bool ordered) {
  return std::make_shared<RotatingChannels>(std::move(name), schema, std::move(width), ordered);
}

std::shared_ptr<Operator> make_keyed_channels(std::string name, std::shared_ptr<const Schema> schema, std::span<const std::string> keys,
                                              std::size_t channels) {
  if (keys.empty()) throw std::invalid_argument("operator '" + name + "': keyed channels need a key field");
  (void)ChannelWidth(channels, channels);  // throws for none
  return std::make_shared<KeyedChannels>(std::move(name), schema, keys, channels);
}

}  // namespace rayelastic
