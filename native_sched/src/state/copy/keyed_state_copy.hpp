// A KeyedState as it was when its copy was begun (state_copy.hpp). The operator's thread keeps single keys aside before it changes them, the
// reader exports the others, 32 slots at a time, or one by one where that takes long; copy_marks.hpp says which of the two has which. So the operator waits for the work on 32 keys
// at most, and keeps as many keys aside as it changes before the reader has come to them.
//
// Beginning copies the addresses of blocks, 8 bytes for 64 KiB, and asks for zeroed memory, 1 byte for 4 slots, that the kernel gives when it
// is touched. Blocks never move and texts stay where they are as long as their slot isn't changed: the reader needs nothing else of the table.
// What was kept aside of a segment the reader takes once it has been at all of its slots: nobody keeps any more there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/mutex.hpp"
#include "rayelastic/state/keyed_state.hpp"
#include "rayelastic/state/state_bytes.hpp"
#include "rayelastic/state/state_copy.hpp"
#include "state/copy/copy_marks.hpp"

namespace rayelastic {

class KeyedState::Copy final : public StateCopy {
 public:
  Copy(const KeyedState& table, CopyForm form);

  // The operator's thread, before a slot is changed, given to a key or taken from it.
  void keep(std::uint32_t number);
  // Nothing has to be kept any more, and nobody reads the table.
  [[nodiscard]] bool is_over() const noexcept { return over_.load(std::memory_order_acquire); }

  [[nodiscard]] std::uint64_t number() const noexcept override { return number_; }
  [[nodiscard]] std::vector<std::uint64_t> changed_after() const override { return changed_after_; }
  void skip(std::size_t segment) override { segments_[segment].is_skipped.store(true, std::memory_order_relaxed); }
  [[nodiscard]] std::optional<StateChunk> next_chunk(std::size_t max_bytes) override;
  void abandon() noexcept override;

 private:
  struct Segment {
    std::atomic<bool> is_skipped{false};
    std::vector<StateWriter> aside = {};  // the operator's until the reader has been at all slots
  };
  struct Free {
    void operator()(CopyMarks* marks) const noexcept;
  };
  static constexpr std::size_t kAsideBytes = 64 * 1024;  // of a piece that is kept aside: memory that grows has to be moved

  [[nodiscard]] const Slot* slot_at(std::size_t number) const noexcept {
    return reinterpret_cast<const Slot*>(blocks_[number >> table_.block_shift_] + (number & table_.block_mask_) * table_.stride_);
  }
  [[nodiscard]] StateWriter new_writer(std::size_t expected) const { return {*form_.magic, form_.layout, expected}; }
  void write(const Slot* slot, StateWriter& writer) const;
  void export_group(std::size_t group, StateWriter& writer);
  void export_singly(std::size_t group, StateWriter& writer);
  // Of the segment that the reader is at; false: there is more of it.
  [[nodiscard]] bool export_segment(StateWriter& writer, std::size_t max_bytes) REL_HELD(reading_);

  const KeyedState& table_;  // what never changes of it, and slots
  const CopyForm form_;
  const std::uint64_t number_;
  const std::size_t slots_;
  const std::size_t keys_;
  const std::size_t segment_count_;
  std::vector<std::uint64_t> changed_after_;
  std::vector<const std::byte*> blocks_;
  std::unique_ptr<CopyMarks[], Free> marks_;  // by group of 32 slots
  std::unique_ptr<Segment[]> segments_;
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> over_{false};  // release: all that was to be read has been
  Mutex reading_;                  // whoever abandons the copy waits for the end of the reader's group

  // The reader's.
  std::size_t segment_ REL_GUARDED_BY(reading_) = 0;
  std::size_t group_ REL_GUARDED_BY(reading_) = 0;       // of all
  std::size_t piece_ REL_GUARDED_BY(reading_) = 0;       // of what was kept aside of the segment
  std::size_t more_ REL_GUARDED_BY(reading_) = 0;        // of the form
  bool given_ REL_GUARDED_BY(reading_) = false;          // something, or it was skipped
  std::uint64_t exported_ REL_GUARDED_BY(reading_) = 0;  // keys
};

}  // namespace rayelastic
