// The keys of the records that a router looks at.
//
// Invariant: keys point into the records that they were extracted from last, kBatch at most.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/hot_keys.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/key_extractor.hpp"

namespace rayelastic {

class RoutedKeys {
 public:
  static constexpr std::size_t kBatch = 256;

  RoutedKeys(const std::shared_ptr<const Schema>& schema, const std::vector<std::string>& fields)
      : extractor_(schema, fields), keys_(kBatch) {}

  [[nodiscard]] std::span<const StringView> extract(const std::byte* records, std::size_t count) {
    RE_CHECK(count <= kBatch);
    extractor_.extract(records, count, keys_.data());
    return {keys_.data(), count};
  }
  // Counts some of the run's keys. True: hottest() has news.
  [[nodiscard]] bool sample(const Run& run) {
    return hot_keys_.pass(run.count,
                          [&](std::size_t at) -> const StringView& { return extract(run.records + at * run.stride, 1).front(); });
  }
  [[nodiscard]] std::optional<HotKey> hottest() const { return hot_keys_.hottest(); }

 private:
  KeyExtractor extractor_;
  std::vector<StringView> keys_;
  HotKeys hot_keys_;
};

}  // namespace rayelastic
