// What an operator keeps that belongs to no key, as a table: all of it is one export, at a mark as when everything is held. Knows no operator.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/state_table.hpp"

namespace rayelastic {

class KeylessState : public StateTable {
 public:
  // Of what write() writes: kinds of operators that can't read each other's differ.
  [[nodiscard]] virtual std::uint64_t form() const noexcept = 0;
  // All that there is. Throws StateError for what can't be had.
  virtual void write(StateWriter& writer) const = 0;
  // Reads that into an operator that has taken nothing yet; throws StateError for what it can't be. Without `restored` it is only looked at,
  // and what was looked at isn't refused the next time, as far as that can be told.
  virtual void read(StateReader& reader, bool restored) = 0;

  [[nodiscard]] std::size_t size() const noexcept override { return 0; }
  [[nodiscard]] std::size_t bytes() const noexcept override { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t layout() const noexcept override { return form(); }
  void select_chunk(KeySelection& /*keys*/, std::uint64_t& at, std::size_t /*max_places*/) const override { at = 0; }
  [[nodiscard]] std::vector<std::byte> export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) override;
  // Written at once, by the operator's thread. Null: that can't be had, and whoever exports it will be told why.
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy() override;
  std::size_t import_range(std::span<const std::byte> bytes) override;
  std::size_t remove_chunk(const KeySelection& /*keys*/, std::uint64_t& at, std::size_t /*max_keys*/) override {
    at = 0;
    return 0;
  }
  void reserve_more(std::size_t /*keys*/) override {}

 protected:
  // For those who look from other threads.
  void publish(std::size_t bytes) noexcept { bytes_.store(bytes, std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::vector<std::byte> written() const;
  [[nodiscard]] bool can_read(std::span<const std::byte> bytes);

  std::uint64_t copies_ = 0;
  std::atomic<std::size_t> bytes_{0};  // relaxed: a figure for other threads, nothing is published by it
};

}  // namespace rayelastic
