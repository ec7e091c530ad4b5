// The join of each left record with all keys of the right: how rules that change, or a table that is a stream, come to every replica.
//
// All replicas get all right records in the same order (router.hpp: everywhere), and each export has what is known of them. A replica takes that
// of another one only as long as it knows nothing itself: with its first keys. From then on it gets what the others get.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "operator/output_writer.hpp"
#include "operators/time/join/join_lives.hpp"
#include "operators/time/join/joined_fields.hpp"
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
  JoinLives lives{options.ttl};
  std::size_t swept = 0;  // rules that were left when those that had ended were last dropped
  bool knows = false;     // it has had a right record, or what another replica knew

  CrossJoin(JoinOptions wanted, std::shared_ptr<const Schema> one, std::shared_ptr<const Schema> other, std::shared_ptr<const Schema> gives)
      : options(std::move(wanted)), left(std::move(one)), right(std::move(other)), output(std::move(gives)) {
    keep(nullptr, &waiting);
  }

  [[nodiscard]] bool is_timed() const noexcept { return left_time.has_value(); }

  [[nodiscard]] bool take_right(const std::byte* record, std::int64_t watermark, OutputWriter&) {
    knows = true;
    const std::int64_t at = is_timed() ? right_time->of(record) : lives.now;
    const std::int64_t needed = is_timed() ? needed_from(watermark) : lives.now;
    std::vector<KeptRecord>& versions = rules[key_of(record)];
    versions.insert(std::ranges::upper_bound(versions, at, {}, &KeptRecord::time), {at, rights.keep(record)});
    forget_before(versions, needed);
    if (lives.any() && rules.size() > 2 * swept) {
      for (auto rule = rules.begin(); rule != rules.end();) rule = has_ended(rule->second, needed) ? rules.erase(rule) : std::next(rule);
      swept = rules.size();
    }
    return true;
  }

  // By the clock.
  [[nodiscard]] bool begin_run(OutputWriter&) {
    if (!is_timed() && lives.any()) lives.now = lives.clock();
    return true;
  }

  // Whether a rule has ended for good: it is dropped then.
  [[nodiscard]] bool has_ended(std::vector<KeptRecord>& versions, std::int64_t at) {
    if (versions.size() > 1 || !is_over(versions.front(), at)) return false;
    rights.drop(versions.front().record);
    return true;
  }
  [[nodiscard]] bool is_over(const KeptRecord& version, std::int64_t at) const noexcept {
    return lives.any() && lives.is_over({version.time}, at);
  }

  // Records that came from a replica whose watermark was behind wait for an advance, and for what was known at their time.
  [[nodiscard]] std::int64_t needed_from(std::int64_t watermark) const {
    return waiting.is_due(watermark) ? waiting.top().time : watermark;
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
    if (!is_timed()) at = lives.now;
    for (auto rule = rules.begin(); rule != rules.end();) {
      std::vector<KeptRecord>& versions = rule->second;
      forget_before(versions, at);
      if (lives.any() && has_ended(versions, at)) {
        rule = rules.erase(rule);
        continue;
      }
      ++rule;
      if (versions.front().time > at || is_over(versions.front(), at)) continue;
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

  // --- TimedState: of no key how many right records (4), and them, key by key, in the order of their times; with a time to live by the clock
  // each with its age
  [[nodiscard]] std::uint64_t form() const noexcept override {
    constexpr std::uint64_t kCross = 0x73736f7263;  // "cross"
    std::uint64_t digest = hash_of(rights.layout() ^ kCross);
    if (is_timed()) digest = hash_of(hash_of(digest ^ left_time->form()) ^ right_time->form());
    for (const Field* const key : right_keys.fields()) digest = hash_of(digest ^ key->offset);
    return lives.any() ? lives.form(digest) : digest;
  }
  [[nodiscard]] std::size_t kept_bytes() const noexcept override { return rights.bytes(); }

  void write_common(StateWriter& writer) const override {
    std::uint32_t count = 0;
    for (const auto& [key, versions] : rules) count += static_cast<std::uint32_t>(versions.size());
    writer.number(count);
    for (const auto& [key, versions] : rules) {
      for (const KeptRecord& each : versions) {
        writer.record(each.record, rights.shape());
        if (lives.clock) lives.write({each.time}, writer);
      }
    }
  }

  void write_rows(StateRows& rows) override {
    for (const auto& [key, versions] : rules) {
      for (const KeptRecord& each : versions) add_right(rows, *left, *right, each.record);
    }
    waiting.for_each([&](const Waiting& each) { add_left(rows, *left, each.record); });
  }

  void read_common(StateReader& reader, bool restored, bool all) override {
    const auto count = reader.number<std::uint32_t>();
    const bool taken = restored && (all || !knows) && count > 0;
    if (taken) forget_rules();
    std::string key;
    std::int64_t known_from = kEndOfTime;  // what is older was forgotten here, but may be needed by records of a replica that was behind
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const exported = reader.record(rights.shape());
      const std::int64_t arrived = lives.clock ? lives.read(reader).touched : 0;
      if (!taken && !(restored && is_timed())) continue;
      std::byte* const record = rights.restore(exported);
      const std::int64_t at = is_timed() ? right_time->of(record) : arrived;
      if (std::string of = key_of(record); i == 0 || of != key) {
        key = std::move(of);
        const auto known = rules.find(key);
        known_from = known == rules.end() ? kEndOfTime : known->second.front().time;
      }
      if (!taken && at >= known_from) {
        rights.drop(record);
        continue;
      }
      std::vector<KeptRecord>& versions = rules[key];
      versions.insert(std::ranges::upper_bound(versions, at, {}, &KeptRecord::time), {at, record});
    }
    if (!taken) return;
    knows = true;
  }
};

class CrossJoinOperator final : public JoinOperator<CrossJoin> {
 public:
  using JoinOperator::JoinOperator;

 private:
  [[nodiscard]] std::int64_t advance(std::int64_t watermark, OutputWriter& writer, rel_context* context) override {
    while (join->waiting.is_due(watermark)) {
      const Waiting& next = join->waiting.top();
      if (!join->match(next.record, next.time, writer)) return REL_STOPPED;
      join->waiting.pop();
    }
    if (watermark == kEndOfTime) return writer.result();
    if (!writer.flush()) return REL_STOPPED;
    context->mark({MarkKind::Watermark, watermark});
    return 0;
  }
};

}  // namespace

std::shared_ptr<Operator> make_cross_join(std::string name, std::shared_ptr<const Schema> left, std::shared_ptr<const Schema> right,
                                          std::shared_ptr<const Schema> output, const JoinOptions& options) try {
  auto join = std::make_unique<CrossJoin>(options, left, right, output);
  join->left_fields = joined_fields(*left, names_of(*left), *output, 0, false);
  join->right_fields = joined_fields(*right, options.right_fields, *output, left->fields().size(), options.left_outer);
  const bool timed = !options.left_time.empty();
  if (timed != !options.right_time.empty()) throw std::invalid_argument("both sides need an event time, or neither");
  return std::make_shared<CrossJoinOperator>(name, std::move(join), options);
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
