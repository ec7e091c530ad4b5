// The state of operators that follow times or counts, as a table (Joker J05, J16). By key, it holds what the kind of operator keeps. It
// also has the records that wait for a watermark, and the time up to which everything is done. Knows no kind of operator.
//
//   chunk  header (state_bytes.hpp; its keys are those of the table), the time reached (8), 1 if it was asked for all keys (1), what belongs to
//          no key, the keys, then records that wait
//
// The time reached belongs to no key. Every chunk has it, an empty one too. With all keys of an operator, as in a snapshot, it goes along: an
// import takes the later one, so that what was late stays late and no window is given twice. With some of its keys, which go to another
// replica, it doesn't: that one may lag behind, and records of its own keys would become late. It comes to that time by itself before the
// first record of a moved key, for a router gives each watermark to all replicas, and none while a key waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"

namespace rayelastic {

class WaitingRecords;

class TimedState : public StateTable {
 public:
  // The watermark, or what follows from it, up to which the operator has done all that there was to do.
  std::int64_t reached = kNoWatermark;

  [[nodiscard]] std::size_t size() const noexcept override { return keys_ == nullptr ? 0 : keys_->size(); }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return (keys_ == nullptr ? 0 : keys_->bytes()) + kept_bytes_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t layout() const noexcept override;
  void select_chunk(KeySelection& keys, std::uint64_t& at, std::size_t max_places) const override;
  [[nodiscard]] std::vector<std::byte> export_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_bytes) override;
  // Kinds tell their table of keys whatever they change by time (KeyedState::will_change). What belongs to no key is written at once.
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy() override { return begin_copy(nullptr); }
  std::size_t import_range(std::span<const std::byte> bytes) override;
  std::size_t remove_chunk(const KeySelection& keys, std::uint64_t& at, std::size_t max_keys) override;
  void reserve_more(std::size_t keys) override;

  // For those who look from other threads.
  void publish() noexcept;

 protected:
  // `rest`: as KeyedState::CopyForm has it.
  [[nodiscard]] std::shared_ptr<StateCopy> begin_copy(std::function<void()> rest);

  // Before anything else: the table of keys, one pointer each, null for a new key; what waits.
  void keep(KeyedState* keys, WaitingRecords* waiting) noexcept {
    RE_CHECK(keys_ == nullptr || keys_ == keys);
    RE_CHECK(keys == nullptr || keys->state_size() >= sizeof(void*));
    keys_ = keys;
    waiting_ = waiting;
  }

  // Of what write() writes: kinds of operators, or other parameters, that can't read each other's differ.
  [[nodiscard]] virtual std::uint64_t form() const noexcept = 0;
  [[nodiscard]] virtual std::size_t kept_bytes() const noexcept { return 0; }
  // What belongs to no key, and is in every chunk: all replicas have the same of it, or will have. Reads that as read() does; `all` tells
  // whether it was asked for all keys.
  virtual void write_common(StateWriter& /*writer*/) const {}
  virtual void read_common(StateReader& /*reader*/, bool /*restored*/, bool /*all*/) {}
  // What a key has, not null.
  virtual void write(const void* /*slot*/, StateWriter& /*writer*/) const {}
  // Reads that, which was exported when `until` was reached, into the slot of a new key; throws StateError for what it can't be. With a null
  // slot that is all; what was checked so isn't refused the next time.
  virtual void read(StateReader& /*reader*/, void* /*slot*/, std::int64_t /*until*/) {}
  // Drops what a key has and makes the slot null.
  virtual void forget(void* /*slot*/) noexcept {}

 private:
  [[nodiscard]] std::vector<StringView> read_keys(std::span<const std::byte> bytes);
  // What is in front of the keys of each chunk.
  void write_preamble(bool all, StateWriter& writer) const;

  KeyedState* keys_ = nullptr;
  WaitingRecords* waiting_ = nullptr;
  std::uint64_t copies_ = 0;                // of an operator without a table of keys
  std::atomic<std::size_t> kept_bytes_{0};  // relaxed: a figure for other threads, nothing is published by it
};

}  // namespace rayelastic
