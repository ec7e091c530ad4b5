// The queue of one input port: a bounded ring of fixed-stride records with bulk push and bulk in-place read (P09), and beside
// it a ring of notes: chunks to release once the consumer has passed a position, and marks that stand at a position (P22).
// Knows neither threads nor operators; who may be producer or consumer is decided by the locks of Port (P10).
//
// Invariants
//   Owners: one producer and one consumer at a time; successive ones are ordered by whoever guards the side. Positions only
//     grow. Slots [read, written) are the consumer's, which may write to them; the others are the producer's.
//   Linearisation: push of records at the store to written_, of a mark at the store to notes_written_, advance at the store to
//     read_, pop of a mark at the store to notes_read_.
//   Pairs: written_ and notes_written_ (release, producer) with the acquire loads in front() and retire(); read_, notes_read_
//     and heap_read_ (release, consumer) with the acquire loads in push(), notes_read_ with that in has_mark(), too.
//   A chunk's note is published before the records that need it, and front() reads notes_written_ after written_: whoever sees a
//     record sees its chunks and every mark in front of it.
//   state_ has kAnnounced from announce() to retire(), which means that somebody is responsible for looking into the queue: exactly
//     one caller of announce() is told to find that somebody. No record is forgotten: announce() and retire() are read-modify-writes
//     (acq_rel) on one word. If the producer's comes first, the consumer's reads from it and retire() sees the push; if it comes second,
//     the producer finds the bit gone and finds somebody.
//   kAwaited: a producer that has given up wants to be told when the queue is empty. The same word, so that either
//     whoever retires hears of it, or await() finds that nobody is responsible.
//   Lifetime: a note holds one reference of its chunk until advance() passes its position, or the destructor.
//   push may take a part of a run, or nothing, when slots, notes or heap bytes run out; it never fails spuriously for long: its
//     knowledge of read_ is refreshed whenever the run doesn't fit.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "rayelastic/assert.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/queue/machine.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

template <template <class> class Atom = std::atomic>
class PortQueue {
  using Memory = Machine<Atom>;

 public:
  // What the consumer finds: a mark, or records in place, or neither (empty). Valid until advance() or pop_mark().
  struct Front {
    std::byte* records = nullptr;
    std::size_t count = 0;
    std::span<Chunk* const> chunks = {};
    const Mark* mark = nullptr;
    Chunk* home = nullptr;  // the records are all that was pushed by reference, and in there
  };

  // `records` is rounded up to a power of two; `heap_bytes` bounds what chunks keep alive (one run always fits).
  PortQueue(std::size_t stride, std::size_t records, std::size_t heap_bytes)
      : stride_(stride),
        capacity_(std::bit_ceil(std::max<std::size_t>(records, 2))),
        note_capacity_(std::max<std::size_t>(capacity_ / 4, Memory::kMinNotes)),
        heap_limit_(heap_bytes),
        ring_(static_cast<std::byte*>(::operator new(capacity_ * stride, std::align_val_t{kLine}))),
        notes_(note_capacity_),
        limit_(capacity_) {
    RE_CHECK(stride_ > 0 && std::has_single_bit(capacity_) && std::has_single_bit(note_capacity_));
    chunks_.reserve(note_capacity_);
  }

  ~PortQueue() {
    for (std::uint64_t at = note_head_; at != note_tail_; ++at) {
      if (Chunk* chunk = note(at).chunk; chunk != nullptr) chunk->release();
    }
  }
  PortQueue(const PortQueue&) = delete;
  PortQueue& operator=(const PortQueue&) = delete;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // At most `records` may wait from now on (1 to capacity); what is inside already stays. Any thread.
  void set_limit(std::size_t records) noexcept {
    RE_CHECK(records > 0 && records <= capacity_);
    limit_.store(records, std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  // Records inside; while a side works it may be fewer than there are, never more than there were.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::uint64_t written = written_.load(std::memory_order_acquire);
    const std::uint64_t read = read_.load(std::memory_order_relaxed);
    return written > read ? static_cast<std::size_t>(written - read) : 0;
  }

  // Everything has been passed; exact once no producer is at work. Acquire: what the consumer did with it has happened.
  [[nodiscard]] bool is_drained() const noexcept {
    return read_.load(std::memory_order_acquire) == written_.load(std::memory_order_acquire) &&
           notes_read_.load(std::memory_order_acquire) == notes_written_.load(std::memory_order_acquire);
  }

  // --- producer

  // Takes as many records from the front of `run` as fit and returns how many. A long run that has a home is taken as it is, by
  // reference, or not at all: nothing is copied, its ring slots stay empty.
  [[nodiscard]] std::size_t push(const Run& run) {
    Memory::writes(&tail_, sizeof tail_);
    const std::size_t limit = limit_.load(std::memory_order_relaxed);
    if (room(limit) < run.count) read_seen_ = read_.load(std::memory_order_acquire);
    RE_CHECK(tail_ - read_seen_ <= capacity_);
    const std::size_t count = std::min(run.count, room(limit));
    const bool refer = run.home != nullptr && run.count * stride_ >= kWorthReferring && run.count <= limit / 2;
    if (count == 0 || (refer && count < run.count) || !annotate(run, tail_ + count, refer)) return 0;
    if (!refer) {
      const std::size_t slot = tail_ & (capacity_ - 1);
      const std::size_t first = std::min(count, capacity_ - slot);
      fill(slot, run.records, first);
      if (first < count) fill(0, run.records + first * stride_, count - first);
    }
    tail_ += count;
    written_.store(tail_, std::memory_order_release);
    return count;
  }

  // Puts a mark behind all records pushed so far. False: no room.
  [[nodiscard]] bool push(Mark mark) {
    Memory::writes(&tail_, sizeof tail_);
    if (!has_note_room(1)) return false;
    put_note({.position = tail_, .mark = mark});
    last_mark_ = note_tail_;
    return true;
  }

  // One that was pushed hasn't been popped yet. False: what the consumer did up to the last one has happened.
  [[nodiscard]] bool has_mark() const noexcept {
    Memory::reads(&tail_, sizeof tail_);
    return notes_read_.load(std::memory_order_acquire) < last_mark_;
  }

  // After a push. True: nobody is responsible for this queue, the caller has to find somebody.
  [[nodiscard]] bool announce() noexcept { return (set(kAnnounced) & kAnnounced) == 0; }

  // To be told when this queue is empty, by whoever retires. False: nobody is responsible for it, so it is empty already.
  [[nodiscard]] bool await() noexcept { return (set(kAwaited) & kAnnounced) != 0; }

  // --- consumer

  // The longest span of at most `limit` records (or the one run that came by reference) up to the ring's end or the next mark;
  // stops between the chunks of different runs once it has kGoodSpan records, so that long runs keep their single chunk.
  [[nodiscard]] Front front(std::size_t limit) {
    Memory::writes(&head_, sizeof head_);
    if (written_seen_ - head_ < std::min(limit, kGoodSpan)) {
      written_seen_ = written_.load(std::memory_order_acquire);
      notes_seen_ = notes_written_.load(std::memory_order_acquire);
    }
    RE_CHECK(written_seen_ >= head_ && written_seen_ - head_ <= capacity_);
    const std::size_t slot = head_ & (capacity_ - 1);
    std::byte* records = ring_.get() + slot * stride_;
    std::uint64_t end = head_ + std::min<std::uint64_t>({written_seen_ - head_, limit, capacity_ - slot});
    if (note_head_ == notes_seen_) return {records, static_cast<std::size_t>(end - head_), {}, nullptr};
    chunks_.clear();
    const Note* reference = nullptr;
    std::uint64_t covered = head_;
    for (std::uint64_t at = note_head_; at != notes_seen_ && covered < end; ++at) {
      const Note& next = read_note(at);
      if (next.chunk == nullptr) {
        end = std::min(end, next.position);
        break;
      }
      if (next.records != nullptr) {
        const std::uint64_t start = next.position - next.count;
        if (start > head_) {
          end = std::min(end, start);
          break;
        }
        reference = &next;
        records = next.records + (head_ - start) * stride_;
        end = next.position;  // all of it, even beyond `limit`: only whole runs can go on as they are
        continue;
      }
      if (chunks_.empty() || chunks_.back() != next.chunk) {
        if (!chunks_.empty() && covered - head_ >= kGoodSpan) {
          end = covered;
          break;
        }
        chunks_.push_back(next.chunk);
      }
      covered = next.position;
    }
    const Note& first = read_note(note_head_);
    if (first.chunk == nullptr && first.position == head_) return {nullptr, 0, {}, &first.mark};
    RE_CHECK(end >= head_ && end <= written_seen_);
    const auto count = static_cast<std::size_t>(end - head_);
    return {records, count, chunks_, nullptr, reference != nullptr && count == reference->count ? reference->chunk : nullptr};
  }

  // Passes `count` records: their slots and chunks are given back.
  void advance(std::size_t count) {
    Memory::writes(&head_, sizeof head_);
    RE_CHECK(count <= written_seen_ - head_);
    head_ += count;
    std::uint64_t at = note_head_;
    for (; at != notes_seen_; ++at) {
      const Note& passed = read_note(at);
      if (passed.chunk == nullptr || passed.position > head_) break;
      heap_passed_ += passed.heap_bytes;
      passed.chunk->release();
    }
    if (at != note_head_) {
      note_head_ = at;
      heap_read_.store(heap_passed_, std::memory_order_relaxed);  // published by the next store
      notes_read_.store(at, std::memory_order_release);
    }
    read_.store(head_, std::memory_order_release);
  }

  // Records passed so far.
  [[nodiscard]] std::uint64_t position() const noexcept { return head_; }

  void pop_mark() {
    Memory::writes(&head_, sizeof head_);
    RE_CHECK(note_head_ < notes_seen_);
    notes_read_.store(++note_head_, std::memory_order_release);
  }

  // What the consumer sees without looking at the producer's side again may be stale; this isn't.
  [[nodiscard]] bool empty() const noexcept {
    Memory::reads(&head_, sizeof head_);
    return written_.load(std::memory_order_acquire) == head_ && notes_written_.load(std::memory_order_acquire) == note_head_;
  }

  struct Retirement {
    bool stays = false;    // the consumer stays responsible, because something came meanwhile
    bool awaited = false;  // somebody asked to be told
  };
  // The responsible consumer found nothing.
  [[nodiscard]] Retirement retire() noexcept {
    const bool awaited = (state_.exchange(0, std::memory_order_acq_rel) & kAwaited) != 0;
    return {!empty() && announce(), awaited};
  }
  // True: somebody asked to be told, and isn't any more; the caller does it.
  [[nodiscard]] bool forget_awaited() noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    while ((state & kAwaited) != 0) {
      if (state_.compare_exchange_weak(state, state & ~kAwaited, std::memory_order_relaxed, std::memory_order_relaxed)) return true;
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kAnnounced = 1;
  static constexpr std::uint32_t kAwaited = 2;

  struct Note {
    std::uint64_t position = 0;  // end of the run that needs the chunk, or place of the mark
    Chunk* chunk = nullptr;      // null: a mark
    Mark mark = {};
    std::size_t heap_bytes = 0;
    std::byte* records = nullptr;  // not null: the `count` records up to `position` aren't in the ring but here, in `chunk`
    std::size_t count = 0;
  };
  struct FreeRing {
    void operator()(std::byte* ring) const noexcept { ::operator delete(ring, std::align_val_t{kLine}); }
  };

  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kWorthReferring = 1024;  // bytes; less is copied faster than a note is written and its chunk released
  static constexpr std::size_t kGoodSpan = 64;          // records; longer spans save little per tuple (findings 1)

  [[nodiscard]] Note& note(std::uint64_t at) noexcept { return notes_[at & (note_capacity_ - 1)]; }
  [[nodiscard]] const Note& read_note(std::uint64_t at) noexcept {
    Memory::reads(&note(at), 1);
    return note(at);
  }

  void fill(std::size_t slot, const std::byte* records, std::size_t count) noexcept {
    Memory::writes(ring_.get() + slot * stride_, count * stride_);
    std::memcpy(ring_.get() + slot * stride_, records, count * stride_);
  }

  // What was set before.
  std::uint32_t set(std::uint32_t bits) noexcept {
    std::uint32_t state = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(state, state | bits, std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    return state;
  }

  [[nodiscard]] std::size_t room(std::size_t limit) const noexcept {
    const std::size_t used = static_cast<std::size_t>(tail_ - read_seen_);
    return used < limit ? limit - used : 0;
  }

  [[nodiscard]] bool has_note_room(std::size_t notes) noexcept {
    if (note_capacity_ - (note_tail_ - notes_read_seen_) < notes) notes_read_seen_ = notes_read_.load(std::memory_order_acquire);
    return note_capacity_ - (note_tail_ - notes_read_seen_) >= notes;
  }

  void put_note(const Note& entry) {
    RE_CHECK(note_tail_ - notes_read_seen_ < note_capacity_ && entry.position >= tail_);
    Memory::writes(&note(note_tail_), 1);
    note(note_tail_++) = entry;
    notes_written_.store(note_tail_, std::memory_order_release);
  }

  // Notes what the run up to `end` keeps alive. The note of referred records comes before that of their texts: front() knows where
  // the ring's records end before it looks at chunks. A chunk in a row of runs is counted once: an under-count of at most one.
  [[nodiscard]] bool annotate(const Run& run, std::uint64_t end, bool refer) {
    const std::size_t notes = (refer ? 1 : 0) + (run.chunks.empty() ? 0 : 1);
    if (notes == 0) return true;
    if (!has_note_room(notes)) return false;
    const std::size_t home_bytes = refer ? run.home->size() : 0;
    std::size_t bytes = home_bytes;
    if (run.chunks.size() > 1 || (!run.chunks.empty() && run.chunks.front() != last_chunk_)) {
      for (Chunk* chunk : run.chunks) bytes += chunk->size();
    }
    if (bytes > 0 && heap_pushed_ - heap_seen_ + bytes > heap_limit_) {
      notes_read_seen_ = notes_read_.load(std::memory_order_acquire);
      heap_seen_ = heap_read_.load(std::memory_order_relaxed);
      if (heap_pushed_ != heap_seen_ && heap_pushed_ - heap_seen_ + bytes > heap_limit_) return false;
    }
    heap_pushed_ += bytes;
    if (refer) {
      put_note({.position = end,
                .chunk = ChunkRef::share(run.home).leak(),
                .heap_bytes = home_bytes,
                .records = const_cast<std::byte*>(run.records),
                .count = run.count});
    }
    if (run.chunks.empty()) return true;
    const bool single = run.chunks.size() == 1;
    last_chunk_ = single ? run.chunks.front() : nullptr;
    ChunkRef kept = single ? ChunkRef::share(run.chunks.front()) : Chunk::bundle(run.chunks);
    put_note({.position = end, .chunk = kept.leak(), .heap_bytes = bytes - home_bytes});
    return true;
  }

  const std::size_t stride_;
  const std::size_t capacity_;
  const std::size_t note_capacity_;
  const std::size_t heap_limit_;
  const std::unique_ptr<std::byte[], FreeRing> ring_;
  std::vector<Note> notes_;

  // Producer's line.
  alignas(kLine) Atom<std::uint64_t> written_{0};
  Atom<std::uint64_t> notes_written_{0};
  Atom<std::uint32_t> state_{0};
  // What only the producer uses.
  alignas(kLine) std::uint64_t tail_ = 0;
  std::uint64_t note_tail_ = 0;
  std::uint64_t last_mark_ = 0;  // note_tail_ behind it
  std::uint64_t read_seen_ = 0;
  std::uint64_t notes_read_seen_ = 0;
  std::size_t heap_pushed_ = 0;
  std::size_t heap_seen_ = 0;
  Chunk* last_chunk_ = nullptr;
  // Consumer's line.
  alignas(kLine) Atom<std::uint64_t> read_{0};
  Atom<std::uint64_t> notes_read_{0};
  Atom<std::size_t> heap_read_{0};
  Atom<std::size_t> limit_;
  // What only the consumer uses.
  alignas(kLine) std::uint64_t head_ = 0;
  std::uint64_t note_head_ = 0;
  std::uint64_t written_seen_ = 0;
  std::uint64_t notes_seen_ = 0;
  std::size_t heap_passed_ = 0;
  std::vector<Chunk*> chunks_;
};

}  // namespace rayelastic
