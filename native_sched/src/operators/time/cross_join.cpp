// The join of each left record with all keys of the right: how rules that change, or a table that is a stream, come to every replica.
//
// All replicas get all right records in the same order (router.hpp: everywhere), and each export has what is known of them. A replica takes that
// of another one only as long as it knows nothing itself: with its first keys. From then on it gets what the others get.
#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "operator/output_writer.hpp"
#include "operators/time/joined_fields.hpp"
#include "rayelastic/operators/time/join.hpp"
#include "record/time_field.hpp"
#include "state/record_pool.hpp"
#include "state/timed_state.hpp"
#include "state/waiting_records.hpp"

namespace rayelastic {

namespace {

// `reached`: the watermark.
struct CrossJoin final : TimedState {
  JoinOptions options;
  std::shared_ptr<const Schema> left;
  std::shared_ptr<const Schema> right;
  std::shared_ptr<const Schema> output;
  std::vector<FieldCopy> left_fields = {};
  std::vector<FieldCopy> right_fields = {};
  std::optional<TimeField> left_time = {};
  std::optional<TimeField> right_time = {};
  KeyExtractor left_keys{left, options.left_keys};
  KeyExtractor right_keys{right, options.right_keys};
  RecordPool rights{right};
  std::map<std::string, std::vector<KeptRecord>, std::less<>> rules = {};  // by the bytes of the key, in the order of times
  WaitingRecords waiting{left, 1, [this](const std::byte* record) { return is_timed() ? left_time->of(record) : 0; },
                         [](std::int64_t at) { return at; }, &left_keys};
  bool knows = false;  // it has had a right record, or what another replica knew

  CrossJoin(JoinOptions wanted, std::shared_ptr<const Schema> one, std::shared_ptr<const Schema> other, std::shared_ptr<const Schema> gives)
      : options(std::move(wanted)), left(std::move(one)), right(std::move(other)), output(std::move(gives)) {
    keep(nullptr, &waiting);
  }

  [[nodiscard]] bool is_timed() const noexcept { return left_time.has_value(); }

  void take_right(const std::byte* record, std::int64_t watermark) {
    knows = true;
    const std::int64_t at = is_timed() ? right_time->of(record) : 0;
    std::vector<KeptRecord>& versions = rules[key_of(record)];
    versions.insert(std::ranges::upper_bound(versions, at, {}, &KeptRecord::time), {at, rights.keep(record)});
    forget_before(versions, is_timed() ? watermark : 0);
  }

  [[nodiscard]] std::string key_of(const std::byte* record) {
    StringView key;
    right_keys.extract(record, 1, &key);
    std::string found(1, is_null_key(key) ? '0' : '1');
    found += key.view();
    return found;
  }

  void forget_before(std::vector<KeptRecord>& versions, std::int64_t time) {
    const auto latest = std::ranges::upper_bound(versions, time, {}, &KeptRecord::time);
    if (latest - versions.begin() < 2) return;
    std::for_each(versions.begin(), latest - 1, [this](const KeptRecord& each) { rights.drop(each.record); });
    versions.erase(versions.begin(), latest - 1);
  }

  [[nodiscard]] bool give(const std::byte* one, const std::byte* other, OutputWriter& writer) const {
    std::byte* record = writer.next();
    if (record == nullptr) return false;
    copy_fields(left_fields, *left, one, *output, record);
    if (other != nullptr) copy_fields(right_fields, *right, other, *output, record);
    writer.detach(record);
    return true;
  }

  // Gives a left record with each rule. False: stop.
  [[nodiscard]] bool match(const std::byte* record, std::int64_t at, OutputWriter& writer) {
    bool found = false;
    for (auto& [key, versions] : rules) {
      forget_before(versions, at);
      if (versions.front().time > at) continue;
      found = true;
      if (!give(record, versions.front().record, writer)) return false;
    }
    return found || !options.left_outer || give(record, nullptr, writer);
  }

  void forget_rules() noexcept {
    for (const auto& [key, versions] : rules) {
      for (const KeptRecord& each : versions) rights.drop(each.record);
    }
    rules.clear();
  }

  // --- TimedState: of no key how many right records (4), and them, key by key, in the order of their times
  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kCross = 0x73736f7263;  // "cross"
    std::uint64_t digest = hash_of(rights.layout() ^ kCross);
    if (is_timed()) digest = hash_of(hash_of(digest ^ left_time->form()) ^ right_time->form());
    for (const Field* const key : right_keys.fields()) digest = hash_of(digest ^ key->offset);
    return digest;
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return rights.bytes(); }

  void write_common(StateWriter& writer) const override {
    std::uint32_t count = 0;
    for (const auto& [key, versions] : rules) count += static_cast<std::uint32_t>(versions.size());
    writer.number(count);
    for (const auto& [key, versions] : rules) {
      for (const KeptRecord& each : versions) writer.record(each.record, rights.shape());
    }
  }

  void read_common(StateReader& reader, bool restored, bool all) override {
    const auto count = reader.number<std::uint32_t>();
    const bool taken = restored && (all || !knows) && count > 0;
    if (taken) forget_rules();
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const exported = reader.record(rights.shape());
      if (!taken) continue;
      std::byte* const record = rights.restore(exported);
      rules[key_of(record)].push_back({is_timed() ? right_time->of(record) : 0, record});
    }
    if (!taken) return;
    for (auto& [key, versions] : rules) std::ranges::stable_sort(versions, {}, &KeptRecord::time);
    knows = true;
  }
};

std::int64_t advance(CrossJoin& join, std::int64_t watermark, OutputWriter& writer, rel_context* context) {
  while (join.waiting.is_due(watermark)) {
    const Waiting& next = join.waiting.top();
    if (!join.match(next.record, next.time, writer)) return REL_STOPPED;
    join.waiting.pop();
  }
  if (watermark == kEndOfTime) return writer.result();
  if (!writer.flush()) return REL_STOPPED;
  context->mark({MarkKind::Watermark, watermark});
  return 0;
}

std::int64_t process(const void* in, std::int64_t n, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& join = *static_cast<CrossJoin*>(state);
  const std::int64_t watermark = join.reached = std::max(join.reached, context->watermark());
  OutputWriter writer(*join.output, out, capacity, context);
  if (n == 0) return advance(join, watermark, writer, context);
  const bool from_left = context->port() == 0;
  const auto* record = static_cast<const std::byte*>(in);
  const std::size_t stride = (from_left ? join.left : join.right)->record_size();
  for (std::int64_t i = 0; i < n; ++i, record += stride) {
    if (!from_left) {
      join.take_right(record, watermark);
    } else if (!join.is_timed()) {
      if (!join.match(record, 0, writer)) return REL_STOPPED;
    } else if (const std::int64_t at = join.left_time->of(record); at > watermark) {
      join.waiting.push(record, at, 0);
    } else if (!context->emit(1, record, 1)) {
      return REL_STOPPED;
    }
  }
  join.publish();
  return writer.result();
}

}  // namespace

OperatorSpec make_cross_join(std::string name, std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                             std::shared_ptr<const Schema> output, const JoinOptions& options) try {
  auto join = std::make_shared<CrossJoin>(options, left, right, output);
  join->left_fields = joined_fields(*left, names_of(*left), *output, 0, false);
  join->right_fields = joined_fields(*right, options.right_fields, *output, left->fields().size(), options.left_outer);
  const bool timed = !options.left_time.empty();
  if (timed != !options.right_time.empty()) throw std::invalid_argument("both sides need an event time, or neither");
  if (timed) {
    join->left_time.emplace(*left, options.left_time, options.left_shift);
    join->right_time.emplace(*right, options.right_time, options.right_shift);
  }
  OperatorSpec spec;
  spec.store = join;
  spec.process = process;
  spec.flags = timed ? REL_ON_FINISH | REL_ON_WATERMARK : 0U;
  spec.state = std::move(join);
  spec.input = left;
  spec.further_inputs.push_back(std::move(right));
  spec.output = std::move(output);
  if (timed) spec.further_outputs.push_back(std::move(left));
  spec.name = std::move(name);
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
