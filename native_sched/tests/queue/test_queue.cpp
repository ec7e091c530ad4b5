// PortQueue, FreePorts, Notifier and FlagLock: order, bounds, lifetimes, wake-ups. Two real threads wherever two are meant.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "check.hpp"
#include "rayelastic/queue/flag_lock.hpp"
#include "rayelastic/queue/free_ports.hpp"
#include "rayelastic/queue/notifier.hpp"
#include "rayelastic/queue/port_queue.hpp"

using namespace rayelastic;

namespace {

using Queue = PortQueue<>;

Run run_of(const std::vector<std::int64_t>& values, std::span<Chunk* const> chunks = {}) {
  return {reinterpret_cast<const std::byte*>(values.data()), values.size(), sizeof(std::int64_t), chunks};
}

std::int64_t value_at(const Queue::Front& front, std::size_t index) {
  std::int64_t value = 0;
  std::memcpy(&value, front.records + index * sizeof value, sizeof value);
  return value;
}

// A chunk that tells when it is gone.
ChunkRef counted_chunk(std::atomic<int>& alive, std::size_t bytes = 100) {
  ++alive;
  return Chunk::adopt(nullptr, bytes, [](void* owner) { --*static_cast<std::atomic<int>*>(owner); }, &alive);
}

// A source of numbers that is the same in every run.
struct Dice {
  std::uint64_t state;
  std::uint64_t roll(std::uint64_t sides) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 33) % sides;
  }
};

}  // namespace

TEST(queue_takes_a_part_and_gives_it_back_in_order) {
  Queue queue(8, 8, 1 << 20);
  const std::vector<std::int64_t> values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK_EQ(queue.push(run_of(values)), 8U);
  CHECK_EQ(queue.push(run_of(values)), 0U);
  CHECK_EQ(queue.front(5).count, 5U);
  queue.advance(5);
  CHECK_EQ(queue.push(run_of(values)), 5U);
  const auto rest = queue.front(100);
  CHECK_EQ(rest.count, 3U);  // up to the end of the ring
  CHECK_EQ(value_at(rest, 0), 5);
  queue.advance(3);
  const auto wrapped = queue.front(100);
  CHECK_EQ(wrapped.count, 5U);
  CHECK_EQ(value_at(wrapped, 4), 4);
  queue.advance(5);
  CHECK(queue.empty());
  CHECK_EQ(queue.front(100).count, 0U);
}

TEST(queue_keeps_order_between_two_threads) {
  constexpr std::int64_t kCount = 300'000;
  Queue queue(8, 64, 1 << 20);
  std::thread producer([&queue] {
    Dice dice{1};
    std::vector<std::int64_t> values;
    for (std::int64_t next = 0; next < kCount;) {
      values.resize(1 + dice.roll(100));
      for (std::size_t index = 0; index < values.size(); ++index) values[index] = next + static_cast<std::int64_t>(index);
      const auto taken = static_cast<std::int64_t>(queue.push(run_of(values)));
      next += taken;
      if (taken == 0) std::this_thread::yield();
    }
  });
  std::int64_t expected = 0;
  bool in_order = true;
  while (expected < kCount) {
    const auto front = queue.front(17);
    for (std::size_t index = 0; index < front.count; ++index) in_order = in_order && value_at(front, index) == expected++;
    if (front.count == 0) std::this_thread::yield();
    queue.advance(front.count);
  }
  producer.join();
  CHECK(in_order);
}

TEST(queue_gives_marks_at_their_place) {
  Queue queue(8, 16, 1 << 20);
  CHECK_EQ(queue.push(run_of({1, 2, 3})), 3U);
  CHECK(queue.push(Mark{MarkKind::Split, 7}));
  CHECK(queue.push(Mark{MarkKind::Barrier, 8}));
  CHECK_EQ(queue.push(run_of({4})), 1U);
  CHECK(queue.push(Mark{MarkKind::Final, 0}));
  CHECK_EQ(queue.front(2).count, 2U);
  queue.advance(2);
  CHECK_EQ(queue.front(100).count, 1U);
  queue.advance(1);
  CHECK(queue.front(100).mark != nullptr);
  CHECK_EQ(queue.front(100).mark->value, 7);
  queue.pop_mark();
  CHECK_EQ(queue.front(100).mark->value, 8);
  queue.pop_mark();
  CHECK_EQ(value_at(queue.front(100), 0), 4);
  queue.advance(1);
  CHECK(!queue.empty());
  CHECK(queue.front(100).mark->kind == MarkKind::Final);
  queue.pop_mark();
  CHECK(queue.empty());
}

TEST(queue_refuses_marks_without_room_and_goes_on) {
  Queue queue(8, 4, 1 << 20);
  std::size_t marks = 0;
  while (queue.push(Mark{MarkKind::Split, static_cast<std::int64_t>(marks)})) ++marks;
  CHECK(marks >= 16);
  CHECK_EQ(queue.front(1).mark->value, 0);
  queue.pop_mark();
  CHECK(queue.push(Mark{MarkKind::Split, 99}));
}

TEST(queue_holds_chunks_until_the_consumer_has_passed) {
  std::atomic<int> alive{0};
  Queue queue(8, 16, 1 << 20);
  {
    const ChunkRef one = counted_chunk(alive);
    const ChunkRef two = counted_chunk(alive);
    Chunk* single[] = {one.get()};
    Chunk* both[] = {one.get(), two.get()};
    CHECK_EQ(queue.push(run_of({1, 2, 3}, single)), 3U);
    CHECK_EQ(queue.push(run_of({4, 5}, both)), 2U);
  }
  CHECK_EQ(alive.load(), 2);
  CHECK_EQ(queue.front(2).chunks.size(), 1U);
  queue.advance(2);
  CHECK_EQ(queue.front(100).count, 3U);
  CHECK_EQ(queue.front(100).chunks.size(), 2U);  // the chunk, and the bundle of both
  queue.advance(1);
  CHECK_EQ(alive.load(), 2);  // the bundle needs both
  queue.advance(2);
  CHECK_EQ(alive.load(), 0);
}

TEST(queue_releases_its_chunks_when_it_dies) {
  std::atomic<int> alive{0};
  {
    Queue queue(8, 16, 1 << 20);
    const ChunkRef chunk = counted_chunk(alive);
    Chunk* chunks[] = {chunk.get()};
    CHECK_EQ(queue.push(run_of({1, 2}, chunks)), 2U);
    CHECK_EQ(queue.push(run_of({3}, chunks)), 1U);
  }
  CHECK_EQ(alive.load(), 0);
}

TEST(queue_bounds_heap_bytes_but_takes_one_run_always) {
  std::atomic<int> alive{0};
  Queue queue(8, 16, 1000);
  const ChunkRef big = counted_chunk(alive, 5000);
  const ChunkRef other = counted_chunk(alive, 500);
  Chunk* first[] = {big.get()};
  Chunk* second[] = {other.get()};
  CHECK_EQ(queue.push(run_of({1}, first)), 1U);
  CHECK_EQ(queue.push(run_of({2}, first)), 1U);  // the same chunk costs nothing more
  CHECK_EQ(queue.push(run_of({3}, second)), 0U);
  CHECK_EQ(queue.push(run_of({3})), 1U);  // no heap, no bound
  CHECK_EQ(queue.front(100).count, 3U);
  queue.advance(2);
  CHECK_EQ(queue.push(run_of({4}, second)), 1U);
}

TEST(queue_stops_a_span_between_the_chunks_of_long_runs) {
  std::atomic<int> alive{0};
  Queue queue(8, 512, 1 << 20);
  const ChunkRef one = counted_chunk(alive);
  const ChunkRef two = counted_chunk(alive);
  const std::vector<std::int64_t> values(100);
  Chunk* first[] = {one.get()};
  Chunk* second[] = {two.get()};
  CHECK_EQ(queue.push(run_of(values, first)), 100U);
  CHECK_EQ(queue.push(run_of(values, first)), 100U);
  CHECK_EQ(queue.push(run_of(values, second)), 100U);
  CHECK_EQ(queue.front(512).count, 200U);
  CHECK_EQ(queue.front(512).chunks.size(), 1U);
  queue.advance(200);
  CHECK(queue.front(512).chunks[0] == two.get());
  queue.advance(100);
}

TEST(queue_announcement_forgets_nothing) {
  constexpr std::int64_t kCount = 100'000;
  Queue queue(8, 16, 1 << 20);
  FreePorts<Queue> listed(1);
  std::atomic<std::int64_t> sum{0};
  FlagLock<> consumer;
  std::atomic<bool> done{false};
  const auto work = [&] {
    while (!done.load()) {
      Queue* port = listed.pop();
      if (port == nullptr) {
        std::this_thread::yield();
        continue;
      }
      while (!consumer.try_lock()) cpu_relax();
      for (auto front = port->front(8); front.count > 0; front = port->front(8)) {
        for (std::size_t index = 0; index < front.count; ++index) sum += value_at(front, index);
        port->advance(front.count);
      }
      const bool more = port->retire().stays;
      (void)consumer.unlock();
      if (more) listed.push(port);
    }
  };
  std::thread first(work);
  std::thread second(work);
  std::int64_t expected = 0;
  for (std::int64_t next = 0; next < kCount; ++next) {
    while (queue.push(run_of({next})) == 0) std::this_thread::yield();
    if (queue.announce()) listed.push(&queue);
    expected += next;
  }
  const bool all = check::eventually([&] { return sum.load() == expected; });
  done = true;
  first.join();
  second.join();
  CHECK(all);
}

// Erratum E1: the paper's push keeps the producer lock on success.
TEST(lock_is_free_again_after_use) {
  FlagLock<> lock;
  for (int times = 0; times < 3; ++times) {
    CHECK(lock.try_lock());
    CHECK(!lock.try_lock());
    CHECK_EQ(lock.unlock(), 0U);
  }
}

TEST(lock_hands_notes_to_its_holder_once) {
  FlagLock<> lock;
  CHECK_EQ(lock.leave_note(FlagLock<>::kRelist), 0U);
  CHECK(lock.try_lock());
  CHECK(lock.leave_note(FlagLock<>::kRelist) != 0);
  CHECK_EQ(lock.unlock(), FlagLock<>::kRelist);
  CHECK(lock.try_lock());
  CHECK_EQ(lock.unlock(), 0U);
}

TEST(lock_excludes_and_wakes_sleepers) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  FlagLock<> lock;
  std::int64_t counter = 0;
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        lock.lock();
        ++counter;
        (void)lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(counter, std::int64_t{kThreads} * kRounds);
}

TEST(lock_is_reserved_for_who_waited_long) {
  FlagLock<> lock;
  std::atomic<bool> waiting{false};
  std::atomic<bool> got{false};
  CHECK(lock.try_lock());
  std::thread waiter([&] {
    waiting = true;
    lock.lock();
    got = true;
    (void)lock.unlock();
  });
  // A greedy owner that retakes the lock at once, with no gap that a sleeper could hit by its own speed.
  CHECK(check::eventually([&] {
    (void)lock.unlock();
    while (!got.load() && !lock.try_lock()) cpu_relax();
    return got.load();
  }));
  waiter.join();
}

TEST(free_ports_are_first_in_first_out) {
  FreePorts<int> ports(4);
  int items[4] = {0, 1, 2, 3};
  CHECK(ports.pop() == nullptr);
  CHECK(ports.looks_empty());
  for (int round = 0; round < 10; ++round) {
    for (int& item : items) ports.push(&item);
    CHECK(!ports.looks_empty());
    for (int& item : items) CHECK(ports.pop() == &item);
    CHECK(ports.pop() == nullptr);
  }
}

TEST(free_ports_lose_and_double_nothing) {
  constexpr int kItems = 64;
  constexpr int kRounds = 20'000;
  constexpr int kThreads = 4;
  FreePorts<std::atomic<int>> ports(kItems);
  std::vector<std::atomic<int>> owners(kItems);
  for (auto& item : owners) ports.push(&item);
  std::atomic<bool> doubled{false};
  std::vector<std::thread> threads;
  for (int index = 0; index < kThreads; ++index) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        std::atomic<int>* item = ports.pop();
        if (item == nullptr) continue;
        if (item->fetch_add(1) != 0) doubled = true;
        item->fetch_sub(1);
        ports.push(item);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int left = 0;
  while (ports.pop() != nullptr) ++left;
  CHECK(!doubled.load());
  CHECK_EQ(left, kItems);
}

TEST(notifier_loses_no_wake_up) {
  constexpr int kItems = 30'000;
  FreePorts<int> ports(kItems);
  std::vector<int> items(kItems);
  Notifier<> notifier;
  std::atomic<int> taken{0};
  std::atomic<bool> done{false};
  const auto work = [&] {
    while (!done.load(std::memory_order_seq_cst)) {
      if (ports.pop() != nullptr) {
        ++taken;
        continue;
      }
      notifier.prepare();
      if (!ports.looks_empty() || done.load(std::memory_order_seq_cst))
        notifier.cancel();
      else
        notifier.wait();
    }
  };
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) threads.emplace_back(work);
  for (int& item : items) {
    ports.push(&item);
    notifier.notify_one();
  }
  const bool all = check::eventually([&] { return taken.load() == kItems; });
  done.store(true, std::memory_order_seq_cst);
  notifier.notify_all();
  for (std::thread& thread : threads) thread.join();
  CHECK(all);
  CHECK_EQ(notifier.waiting(), 0U);
}

TEST(a_broken_invariant_is_reported) {
  assertions::on_failure = [](const char* failure) { throw std::logic_error(failure); };
  Queue queue(sizeof(std::int64_t), 8, 1 << 20);
  CHECK_THROWS(queue.advance(1), std::logic_error);
  CHECK_THROWS(queue.pop_mark(), std::logic_error);
  CHECK_THROWS(RE_ASSERT(queue.size() == 1), std::logic_error);
  assertions::on_failure = nullptr;
}

REL_TEST_MAIN
