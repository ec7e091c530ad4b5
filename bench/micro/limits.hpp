// The physical limits that figures are set beside, written plainly: what a machine needs for the same without an engine.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "load.hpp"
#include "measure.hpp"
#include "rayelastic/queue/flag_lock.hpp"

namespace rayelastic::bench {

// A bounded ring of records between two threads, bulk push and bulk read in place, each side with a copy of the other's index.
class RawRing {
 public:
  RawRing(std::size_t stride, std::size_t records) : stride_(stride), mask_(records - 1), ring_(stride * records) {}

  [[nodiscard]] std::size_t push(const std::byte* records, std::size_t count) {
    if (mask_ + 1 - (tail_ - read_seen_) < count) read_seen_ = read_.load(std::memory_order_acquire);
    count = std::min<std::size_t>(count, mask_ + 1 - (tail_ - read_seen_));
    const std::size_t slot = tail_ & mask_;
    const std::size_t first = std::min(count, mask_ + 1 - slot);
    std::memcpy(ring_.data() + slot * stride_, records, first * stride_);
    std::memcpy(ring_.data(), records + first * stride_, (count - first) * stride_);
    tail_ += count;
    written_.store(tail_, std::memory_order_release);
    return count;
  }

  struct Front {
    std::byte* records;
    std::size_t count;
  };
  [[nodiscard]] Front front(std::size_t limit) {
    if (written_seen_ == head_) written_seen_ = written_.load(std::memory_order_acquire);
    const std::size_t slot = head_ & mask_;
    return {ring_.data() + slot * stride_, std::min<std::size_t>({written_seen_ - head_, limit, mask_ + 1 - slot})};
  }
  void advance(std::size_t count) {
    head_ += count;
    read_.store(head_, std::memory_order_release);
  }

 private:
  const std::size_t stride_;
  const std::size_t mask_;
  std::vector<std::byte> ring_;
  alignas(64) std::atomic<std::uint64_t> written_{0};
  alignas(64) std::uint64_t tail_ = 0;
  std::uint64_t read_seen_ = 0;
  alignas(64) std::atomic<std::uint64_t> read_{0};
  alignas(64) std::uint64_t head_ = 0;
  std::uint64_t written_seen_ = 0;
};

// Waits by spinning, `kPauses` at a time; lets the other side run now and then, in case that it has lost its core.
template <int kPauses>
class Patience {
 public:
  void wait() noexcept {
    for (int pause = 0; pause < kPauses; ++pause) cpu_relax();
    if (++waits_ * kPauses < kPausesBeforeYield) return;
    waits_ = 0;
    std::this_thread::yield();
  }

 private:
  static constexpr int kPausesBeforeYield = 512;  // some 10 us
  int waits_ = 0;
};

constexpr std::size_t kBulk = 64;
constexpr int kRingPauses = 64;  // found best: a side that looks too often takes the line away from the other

// ns per record through `rings` raw rings in turn: the source's function makes runs, one thread pushes them, another runs the sink's
// function in place.
inline double raw_ring(Load load, std::size_t capacity, std::size_t rings, double seconds) {
  std::vector<std::unique_ptr<RawRing>> all;
  for (std::size_t index = 0; index < rings; ++index) all.push_back(std::make_unique<RawRing>(load.record, capacity));
  const Functions functions = functions_of(load.record);
  Count total;
  std::atomic<bool> over{false};
  std::thread producer([&] {
    std::vector<std::byte> run(static_cast<std::size_t>(load.run) * load.record);
    Patience<kRingPauses> patience;
    for (std::size_t at = 0; !over.load(std::memory_order_relaxed); at = at + 1 == rings ? 0 : at + 1) {
      const auto made = static_cast<std::size_t>(functions.make(nullptr, 0, run.data(), load.run, &load, nullptr));
      for (std::size_t done = 0; done < made && !over.load(std::memory_order_relaxed);) {
        const std::size_t taken = all[at]->push(run.data() + done * load.record, made - done);
        done += taken;
        if (taken == 0) patience.wait();
      }
    }
  });
  std::thread consumer([&] {
    Patience<kRingPauses> patience;
    for (std::size_t at = 0; !over.load(std::memory_order_relaxed); at = at + 1 == rings ? 0 : at + 1) {
      const RawRing::Front front = all[at]->front(kBulk);
      if (front.count == 0) {
        patience.wait();
        continue;
      }
      functions.touch(front.records, static_cast<std::int64_t>(front.count), nullptr, 0, &total, nullptr);
      all[at]->advance(front.count);
    }
  });
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 10));
  const std::int64_t before = total.rows.load();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto rows = static_cast<double>(total.rows.load() - before);
  const double took = seconds_since(start);
  over = true;
  producer.join();
  consumer.join();
  return 1e9 * took / std::max(rows, 1.0);
}

// ns of processor time per call: the same functions, one after the other, on one run that stays in cache.
inline double plain_calls(const Load& load, std::size_t operators, double seconds) {
  const Functions functions = functions_of(load.record);
  const std::vector<rel_process> chain(operators, load.cost == 1 ? functions.multiply_once : functions.multiply_often);
  std::vector<double> records(static_cast<std::size_t>(load.run) * load.record / sizeof(double), 1.0);
  Load state = load;
  std::int64_t calls = 0;
  const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (double took = 0;; took = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start) {
    if (took > seconds) return 1e9 * took / static_cast<double>(calls);
    for (int repeat = 0; repeat < 10; ++repeat) {
      for (const rel_process process : chain) process(records.data(), load.run, records.data(), load.run, &state, nullptr);
    }
    calls += 10 * static_cast<std::int64_t>(operators);
  }
}

// ns per copy of `bytes`, from a working set of that size into another.
inline double copying(std::size_t bytes, double seconds) {
  std::vector<char> from(bytes, 'x'), to(bytes);
  std::int64_t copies = 0;
  const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (double took = 0;; took = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start) {
    if (took > seconds) return 1e9 * took / static_cast<double>(copies);
    for (int repeat = 0; repeat < 1000; ++repeat) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" ::"r"(to.data()) : "memory");
    }
    copies += 1000;
  }
}

// ns for a cache line to go from one core to the other by compare-exchange, one way.
inline double ping_pong(double seconds) {
  alignas(64) std::atomic<std::uint64_t> word{0};
  std::atomic<bool> over{false};
  const auto play = [&](std::uint64_t parity) {
    Patience<1> patience;
    for (std::uint64_t mine = parity; !over.load(std::memory_order_relaxed);) {
      std::uint64_t expected = mine;
      if (word.compare_exchange_weak(expected, mine + 1, std::memory_order_acq_rel, std::memory_order_relaxed))
        mine += 2;
      else
        patience.wait();
    }
  };
  const auto start = Clock::now();
  std::thread other(play, 1);
  std::thread one(play, 0);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  over = true;
  one.join();
  other.join();
  return 1e9 * seconds_since(start) / static_cast<double>(std::max<std::uint64_t>(word.load(), 1));
}

// us from one thread to another and back, both asleep meanwhile, by condition variable.
inline double condition_round_trip(double seconds) {
  std::mutex mutex;
  std::condition_variable changed;
  std::int64_t turn = 0;
  bool over = false;
  const auto play = [&](std::int64_t parity) {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return over || turn % 2 == parity; });
      if (over) return;
      ++turn;
      changed.notify_one();
    }
  };
  const auto start = Clock::now();
  std::thread one(play, 0);
  std::thread other(play, 1);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  std::int64_t turns = 0;
  {
    const std::lock_guard guard(mutex);
    turns = turn;
    over = true;
  }
  const double took = seconds_since(start);
  changed.notify_all();
  one.join();
  other.join();
  return 2e6 * took / static_cast<double>(std::max<std::int64_t>(turns, 1));
}

// us from waking a thread that has slept for `gap` (a futex word) until it runs; one value a sample.
inline std::vector<double> wake_ups(std::size_t samples, std::chrono::microseconds gap) {
  std::vector<double> found;
  found.reserve(samples);
  std::atomic<std::int64_t> stamp{0};
  std::atomic<std::int64_t> seen{0};
  std::thread sleeper([&] {
    for (std::size_t index = 0; index < samples; ++index) {
      const std::int64_t last = seen.load(std::memory_order_relaxed);
      stamp.wait(last);
      const std::int64_t sent = stamp.load();
      found.push_back(1e-3 * static_cast<double>(nanoseconds_now() - sent));
      seen.store(sent);
    }
  });
  for (std::size_t index = 0; index < samples; ++index) {
    std::this_thread::sleep_for(gap);
    while (seen.load() != stamp.load()) std::this_thread::yield();
    stamp.store(nanoseconds_now());
    stamp.notify_one();
  }
  sleeper.join();
  return found;
}

}  // namespace rayelastic::bench
