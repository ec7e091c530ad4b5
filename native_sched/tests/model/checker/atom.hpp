// Atom<T>: std::atomic<T> as far as the code under test uses it, every access a step of the current Execution. And the machine that
// code runs on when it runs on Atom: a clock that is a choice, tiny sizes, plain memory that is watched.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "checker/execution.hpp"
#include "rayelastic/queue/machine.hpp"

namespace rayelastic::model {

template <class T>
class Atom {
  using Where = std::source_location;
  using Order = std::memory_order;

 public:
  Atom() : Atom(T{}) {}
  Atom(T value) : location_(Execution::the().add_location(bits(value))) {}  // NOLINT: as std::atomic does
  Atom(const Atom&) = delete;
  Atom& operator=(const Atom&) = delete;

  [[nodiscard]] T load(Order order, Where where = Where::current()) const {
    return value(Execution::the().load(location_, Site::of(where, Kind::Load, order)));
  }
  void store(T desired, Order order, Where where = Where::current()) {
    Execution::the().store(location_, bits(desired), Site::of(where, Kind::Store, order));
  }
  T exchange(T desired, Order order, Where where = Where::current()) {
    return value(Execution::the().exchange(location_, bits(desired), Site::of(where, Kind::Exchange, order)));
  }
  T fetch_add(T amount, Order order, Where where = Where::current()) {
    return value(Execution::the().add(location_, bits(amount), bits(static_cast<T>(~T{})), Site::of(where, Kind::Add, order)));
  }
  bool compare_exchange_strong(T& expected, T desired, Order success, Order failure, Where where = Where::current()) {
    std::uint64_t seen = bits(expected);
    const bool ok = Execution::the().compare_exchange(location_, seen, bits(desired), Site::of(where, Kind::Compare, success, failure));
    expected = value(seen);
    return ok;
  }
  bool compare_exchange_weak(T& expected, T desired, Order success, Order failure, Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, success, failure, where);
  }
  void wait(T old, Order order, Where where = Where::current()) const {
    Execution::the().wait(location_, bits(old), Site::of(where, Kind::Wait, order));
  }
  void notify_one(Where where = Where::current()) {
    Execution::the().notify(location_, false, Site::of(where, Kind::Notify, std::memory_order_relaxed));
  }
  void notify_all(Where where = Where::current()) {
    Execution::the().notify(location_, true, Site::of(where, Kind::Notify, std::memory_order_relaxed));
  }

 private:
  static std::uint64_t bits(T value) {
    if constexpr (std::is_pointer_v<T>)
      return Execution::the().number_of(value);
    else
      return static_cast<std::uint64_t>(value);
  }
  static T value(std::uint64_t bits) {
    if constexpr (std::is_pointer_v<T>)
      return static_cast<T>(Execution::the().numbered(bits));
    else
      return static_cast<T>(bits);
  }

  const int location_;
};

// Whoever reads it again may find that much time has passed.
struct ChosenClock {
  using duration = std::chrono::milliseconds;
  using time_point = std::chrono::time_point<ChosenClock, duration>;
  static constexpr bool is_steady = true;
  static time_point now();
};

}  // namespace rayelastic::model

template <>
struct rayelastic::Machine<rayelastic::model::Atom> {
  using Clock = model::ChosenClock;

  static constexpr int kSpins = 1;
  static constexpr std::size_t kMinNotes = 2;
  static void relax(int /*spin*/ = 0) { model::Execution::the().relax(); }
  static void reads(const void* address, std::size_t bytes) { model::Execution::the().plain(address, bytes, false); }
  static void writes(const void* address, std::size_t bytes) { model::Execution::the().plain(address, bytes, true); }
};
