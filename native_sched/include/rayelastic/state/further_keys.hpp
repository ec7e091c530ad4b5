// Looks up the states of records of a further input port, whose schema differs from that of the table of states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/record/key_extractor.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

class TimeField;

class FurtherKeys {
 public:
  // `time`, with `shift` ticks added: the event time that touches keys with a time to live; empty: the clock. Throws std::invalid_argument.
  FurtherKeys(const std::shared_ptr<const Schema>& input, const std::vector<std::string>& keys, const std::string& time,
              std::int64_t shift);
  ~FurtherKeys();
  FurtherKeys(FurtherKeys&&) noexcept;

  // As KeyedState::lookup.
  void lookup(KeyedState& table, const std::byte* records, std::size_t count, void** slots);

 private:
  KeyExtractor extractor_;
  std::unique_ptr<const TimeField> time_;
  std::size_t stride_;
  std::vector<StringView> keys_ = {};
  std::vector<std::int64_t> times_ = {};
};

}  // namespace rayelastic
