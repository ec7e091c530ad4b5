// PortQueue: order, bounds, marks, chunks, and that nothing is forgotten between announce() and retire().
#include <cstdint>
#include <vector>

#include "scenarios/faulty.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

namespace {

using Record = std::int64_t;
constexpr std::size_t kCapacity = 2;
constexpr std::size_t kHeapBytes = 600;

Run run_of(const Record* records, std::size_t count, std::span<Chunk* const> chunks = {}) {
  return {reinterpret_cast<const std::byte*>(records), count, sizeof(Record), chunks};
}

// The consumer of a front: records are 0, 1, 2, ...
class Expected {
 public:
  void take(const PortQueue<Atom>::Front& front) {
    Machine<Atom>::reads(front.records, front.count * sizeof(Record));
    for (std::size_t index = 0; index < front.count; ++index) {
      Record record = 0;
      std::memcpy(&record, front.records + index * sizeof record, sizeof record);
      require(record == next++, "a record is lost, doubled or out of order");
    }
  }
  Record next = 0;
};

// A limit below the capacity is kept.
class Limited final : public Scenario {
 public:
  Limited() { queue_.set_limit(1); }
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    const Record records[] = {0, 1, 2, 3};
    for (int step = 0; step < 3; ++step) {
      if (thread == 0) {
        const std::size_t taken = queue_.push(run_of(records + pushed_, 2));
        require(taken <= 1, "more is taken than may wait");
        pushed_ += taken;
      } else if (const auto front = queue_.front(2); front.count > 0) {
        require(front.count == 1, "more waits than may");
        expected_.take(front);
        queue_.advance(front.count);
      }
    }
  }

 private:
  Queue queue_{sizeof(Record), kCapacity, kHeapBytes};
  std::size_t pushed_ = 0;
  Expected expected_;
};

// Four pushes of one or two records, four looks; either may find no room or nothing.
template <std::size_t kLongest>
class PushAndAdvance final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      const Record records[] = {0, 1, 2, 3, 4, 5, 6, 7};
      for (int step = 0; step < 4; ++step) pushed_ += queue_.push(run_of(records + pushed_, kLongest));
    } else {
      for (int step = 0; step < 4; ++step) {
        const auto front = queue_.front(kLongest);
        expected_.take(front);
        if (front.count > 0) queue_.advance(front.count);
      }
    }
  }
  void finish() override {
    for (auto front = queue_.front(1); front.count > 0; front = queue_.front(1)) {
      expected_.take(front);
      queue_.advance(front.count);
    }
    require(static_cast<std::size_t>(expected_.next) == pushed_, "what was pushed doesn't come out");
    require(queue_.empty(), "an empty queue doesn't say so");
  }

 private:
  Queue queue_{sizeof(Record), kCapacity, kHeapBytes};
  std::size_t pushed_ = 0;
  Expected expected_;
};

// Whoever is told to find somebody posts a letter; the consumer sleeps until there is one. All records must arrive. The letter orders
// nothing (relaxed): announce() and retire() have to.
template <int kRecords>
class Responsibility final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    if (thread == 0) {
      for (Record record = 0; record < kRecords;) {
        if (queue_.push(run_of(&record, 1)) == 0) {
          Machine<Atom>::relax();
          continue;
        }
        ++record;
        if (queue_.announce()) {
          require(letters_.exchange(1, std::memory_order_relaxed) == 0, "two were told to find somebody");
          letters_.notify_one();
        }
      }
    } else {
      while (expected_.next < kRecords) {
        while (letters_.exchange(0, std::memory_order_relaxed) == 0) letters_.wait(0, std::memory_order_relaxed);
        do {
          for (auto front = queue_.front(2); front.count > 0; front = queue_.front(2)) {
            expected_.take(front);
            queue_.advance(front.count);
          }
        } while (queue_.retire().stays);
      }
    }
  }

 private:
  Queue queue_{sizeof(Record), kCapacity, kHeapBytes};
  Atom<std::uint32_t> letters_{0};
  Expected expected_;
};

// Records that need chunks, and marks, in a queue whose heap limit is one chunk and whose notes are two.
class NotesAndMarks final : public Scenario {
 public:
  NotesAndMarks() {
    for (Text& text : texts_)
      text.chunk = Chunk::adopt(&text, kHeapBytes, [](void* owner) { static_cast<Text*>(owner)->gone = true; }, &text);
  }
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override { thread == 0 ? produce() : consume(); }
  void finish() override {
    for (Text& text : texts_) {
      require(text.chunk->is_unique(), "a chunk isn't given back");
    }
  }

 private:
  struct Text {
    ChunkRef chunk;
    Record content = 0;
    bool gone = false;
  };

  void produce() {
    for (Record record = 0; record < 2; ++record) {
      Text& text = texts_[record];
      Machine<Atom>::writes(&text.content, sizeof text.content);
      text.content = record;
      Chunk* chunk = text.chunk.get();
      while (queue_.push(run_of(&record, 1, {&chunk, 1})) == 0) Machine<Atom>::relax();
      while (!queue_.push(Mark{MarkKind::Watermark, record})) Machine<Atom>::relax();
    }
  }
  void consume() {
    for (Record marks = 0; marks < 2;) {
      const auto front = queue_.front(2);
      if (front.mark != nullptr) {
        require(front.mark->value == marks && expected_.next == marks + 1, "a mark is out of order");
        queue_.pop_mark();
        ++marks;
      } else if (front.count > 0) {
        require(front.count == 1, "records on both sides of a mark come together");
        require(front.chunks.size() == 1 && front.chunks[0] == texts_[expected_.next].chunk.get(), "a record comes without its chunk");
        Text& text = texts_[expected_.next];
        Machine<Atom>::reads(&text.content, sizeof text.content);
        require(!text.chunk->is_unique(), "the queue doesn't hold a chunk that it needs");
        expected_.take(front);
        queue_.advance(front.count);
      } else {
        Machine<Atom>::relax();
      }
    }
  }

  Text texts_[2];
  Queue queue_{sizeof(Record), kCapacity, kHeapBytes};
  Expected expected_;
};

// More notes than there is room for: what the consumer has passed must be given back, or the producer waits for ever.
template <bool kMarks>
class FullOfNotes final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 2; }
  void run(int thread) override {
    for (Record step = 0; step < 3;) {
      const bool done = thread == 0 ? produce(step) : consume(step);
      if (done)
        ++step;
      else
        Machine<Atom>::relax();
    }
  }

 private:
  bool produce(Record step) {
    if (kMarks) return queue_.push(Mark{MarkKind::Watermark, step});
    Chunk* chunk = chunk_.get();
    return queue_.push(run_of(&step, 1, {&chunk, 1})) == 1;
  }
  bool consume(Record step) {
    const auto front = queue_.front(1);
    if (front.mark != nullptr) {
      require(front.mark->value == step, "a mark is lost, doubled or out of order");
      queue_.pop_mark();
      return true;
    }
    expected_.take(front);
    if (front.count > 0) queue_.advance(front.count);
    return front.count > 0;
  }

  ChunkRef chunk_ = Chunk::allocate(8);
  Queue queue_{sizeof(Record), kCapacity, kHeapBytes};
  Expected expected_;
};

// Two producers behind a lock, two consumers behind another: the sides change hands.
class ChangingHands final : public Scenario {
 public:
  [[nodiscard]] int threads() const override { return 3; }
  void run(int thread) override {
    if (thread < 2) {
      for (int pushes = 0; pushes < 2; ++pushes) {
        lock(producer_);
        while (queue_.push(run_of(&pushed_, 1)) == 0) Machine<Atom>::relax();
        ++pushed_;
        producer_.store(0, std::memory_order_release);
      }
    }
    if (thread > 0) {
      for (int looks = 0; looks < 2;) {
        lock(consumer_);
        const auto front = queue_.front(1);
        expected_.take(front);
        if (front.count > 0) queue_.advance(front.count);
        looks += front.count > 0 ? 1 : 0;
        consumer_.store(0, std::memory_order_release);
        if (front.count == 0) Machine<Atom>::relax();
      }
    }
  }

 private:
  static void lock(Atom<int>& word) {
    while (word.exchange(1, std::memory_order_acquire) != 0) Machine<Atom>::relax();
  }

  Queue queue_{sizeof(Record), kCapacity, kHeapBytes};
  Atom<int> producer_{0};
  Atom<int> consumer_{0};
  Record pushed_ = 0;
  Expected expected_;
};

template <class Kind>
std::unique_ptr<Scenario> make() {
  return std::make_unique<Kind>();
}

}  // namespace

std::vector<Case> queue_cases() {
  return {
      {"PortQueue", "4 pushes of 1, 4 looks", make<PushAndAdvance<1>>},
      {"PortQueue", "4 pushes of 2, 4 looks", make<PushAndAdvance<2>>},
      {"PortQueue", "room limited to 1", make<Limited>},
      {"PortQueue", "announce and retire, 2 records", make<Responsibility<2>>},
      {"PortQueue", "announce and retire, 4 records", make<Responsibility<4>>, true, {.preemptions = 3, .stale = 1}},
      {"PortQueue", "chunks and marks", make<NotesAndMarks>, true, {.preemptions = 3, .stale = 1}},
      {"PortQueue", "3 marks", make<FullOfNotes<true>>, true, {.preemptions = 3, .stale = 1}},
      {"PortQueue", "3 records with a chunk", make<FullOfNotes<false>>, true, {.preemptions = 3, .stale = 1}},
      {"PortQueue", "3 threads, sides change hands", make<ChangingHands>, false},
  };
}

}  // namespace rayelastic::model
