#include "engine/graph/junction.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "rayelastic/assert.hpp"

namespace rayelastic {

Junction::Junction(Operator& op, std::vector<Input> inputs, std::size_t stage_records, std::size_t spare_bytes)
    : gate(inputs.size()),
      demands_(op.demands()),
      stage_records_(stage_records),
      spare_bytes_(spare_bytes),
      inputs_(std::move(inputs)),
      relatives_(demands_.size()),
      kept_(op.stages()),
      stages_(kept_ == nullptr ? own_ : kept_->buffers()),
      limits_(demands_.size(), stage_records),
      counts_(demands_.size(), 0) {
  for (std::size_t port = 0; kept_ == nullptr && port < demands_.size(); ++port) own_.emplace_back(inputs_[port].stride);
}

bool Junction::end_edge(std::size_t input) {
  RE_CHECK(input < inputs_.size() && inputs_[input].finals < inputs_[input].edges);
  if (++inputs_[input].finals < inputs_[input].edges) return false;
  gate.close(input);
  return true;
}

std::size_t Junction::stage(std::size_t input, const Run& run) {
  const std::size_t size = stages_[input].size();
  const std::size_t count = is_open() ? run.count : std::min(run.count, limits_[input] - std::min(limits_[input], size));
  stages_[input].append(run, count);
  RE_CHECK(stages_[input].size() == size + count);
  return count;
}

Junction::Widened Junction::widen(std::size_t input) {
  RE_CHECK(input < relatives_.size());
  const auto lacks = [this](std::size_t port) {
    return !gate.is_closed(port) && stages_[port].size() < static_cast<std::size_t>(demands_[port].count);
  };
  if (!std::ranges::any_of(relatives_[input], lacks)) return Widened::No;
  if (stages_[input].bytes() >= spare_bytes_) return Widened::Beyond;
  limits_[input] = stages_[input].size() + stage_records_;
  return Widened::Yes;
}

std::optional<std::int64_t> Junction::ready() const {
  std::size_t firings = std::numeric_limits<std::size_t>::max();
  bool lacking = false;
  bool ended = false;
  bool some = false;
  for (std::size_t port = 0; port < demands_.size(); ++port) {
    const std::size_t size = stages_[port].size();
    const auto count = static_cast<std::size_t>(demands_[port].count);
    some = some || size > 0;
    if (size < count) {
      lacking = true;
      ended = ended || gate.is_closed(port);
    } else {
      firings = std::min(firings, demands_[port].kind == Demand::Kind::AtLeast ? 1 : std::min(size, stage_records_) / count);
    }
  }
  if (!lacking) return static_cast<std::int64_t>(firings);
  return ended && some ? std::optional<std::int64_t>(0) : std::nullopt;
}

void Junction::begin(std::int64_t firings) {
  RE_CHECK(!is_firing() && firings >= 0);
  firings_ = firings;
  chunks_.clear();
  for (std::size_t port = 0; port < demands_.size(); ++port) {
    const bool exact = firings > 0 && demands_[port].kind == Demand::Kind::Exact;
    counts_[port] = exact ? static_cast<std::size_t>(firings * demands_[port].count) : std::min(stages_[port].size(), stage_records_);
    RE_CHECK(counts_[port] <= stages_[port].size());
    stages_[port].chunks_of(counts_[port], chunks_);
  }
}

void Junction::consume() {
  RE_CHECK(is_firing());
  firings_ = -1;
  chunks_.clear();
  for (std::size_t port = 0; port < demands_.size(); ++port) {
    stages_[port].pop(counts_[port]);
    limits_[port] = stage_records_;
  }
}

std::size_t Junction::records() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}); }

}  // namespace rayelastic
