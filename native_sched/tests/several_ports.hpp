// Operators with several ports, for the tests of firing rules, of loops and of ports: what makes them and what they see.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "pipeline.hpp"

namespace rayelastic::check {

inline constexpr std::int64_t kRows = 20'000;
inline constexpr unsigned kThreads[] = {1, 2, 8};
inline constexpr const char* kModels[] = {"m", "d", "t", "md", "dmt"};

inline void at_all(const std::function<void(unsigned threads, const char* models)>& body) {
  for (const unsigned threads : kThreads) {
    for (const char* models : kModels) body(threads, models);
  }
}

// A chain of operators behind `from`, whose rows come from its output port `output`.
inline OperatorId behind(Rig& rig, OperatorId from, std::size_t length, const char* models, std::size_t output = 0) {
  for (std::size_t index = 0; index < length; ++index) {
    TestOperator spec = pass("pass");
    spec.model = model_for(models, index);
    const OperatorId id = rig.add(std::move(spec));
    rig.scheduler.connect(from, id, index == 0 ? output : 0);
    from = id;
  }
  return from;
}

// A conjunctive operator that sees that each port's rows come in order and in the counts that it asked for. Gives, for each firing,
// one row of the firing's number; what comes after a port's end is only counted.
struct Zip : Guarded {
  std::vector<Demand> demands;
  std::vector<std::int64_t> next;  // by port
  std::int64_t firings = 0;
  std::int64_t rest = 0;  // rows
  std::int64_t most = 0;  // rows of one port in one call
  std::atomic<bool> wrong{false};
};

inline TestOperator zip(std::vector<Demand> demands, std::string name = "zip") {
  auto state = std::make_shared<Zip>();
  state->demands = demands;
  state->next.resize(demands.size(), 0);
  TestOperator spec{.name = std::move(name),
                    .flags = REL_ON_FINISH,
                    .state = std::shared_ptr<Guarded>(state),
                    .inputs = {row_schema()},
                    .outputs = {row_schema()}};
  spec.inputs.resize(demands.size(), row_schema());
  spec.demands = std::move(demands);
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    auto& self = *static_cast<Zip*>(static_cast<Guarded*>(opaque));
    const Inside inside(self);
    const std::int64_t firings = rel_firings(context);
    if (firings < 0) {
      self.finished = true;
      return 0;
    }
    bool all = true;
    for (std::size_t port = 0; port < self.demands.size(); ++port) {
      std::int64_t count = -1;
      const auto* rows = static_cast<const Row*>(rel_staged(context, static_cast<std::int32_t>(port), &count));
      const Demand& demand = self.demands[port];
      all = all && count >= demand.count;
      if (count != rel_staged_count(context, static_cast<std::int32_t>(port)) || count > capacity) self.wrong = true;
      if (port == 0 && (count != n || (n > 0 && rows != in))) self.wrong = true;
      if (firings > 0 && (demand.kind == Demand::Kind::Exact ? count != firings * demand.count : count < demand.count)) self.wrong = true;
      for (std::int64_t index = 0; index < count; ++index) {
        if (rows[index].sequence != self.next[port]++) self.wrong = true;
      }
      if (firings == 0) self.rest += count;
      self.most = std::max(self.most, count);
    }
    if ((firings == 0 && all) || rel_staged(context, 99, nullptr) != nullptr) self.wrong = true;
    for (std::int64_t index = 0; index < firings; ++index) static_cast<Row*>(out)[index] = {0, self.firings++};
    return firings;
  };
  return spec;
}

inline Zip& zip_of(Rig& rig, OperatorId id) { return state_of<Zip>(rig.specs[id]); }

inline void expect_zipped(Rig& rig, OperatorId id, std::int64_t firings, const std::vector<std::int64_t>& rows) {
  const Zip& self = zip_of(rig, id);
  CHECK(!self.wrong.load());
  CHECK(self.finished.load());
  CHECK_EQ(self.firings, firings);
  CHECK_EQ(self.next.size(), rows.size());
  std::int64_t used = 0;
  for (std::size_t port = 0; port < rows.size(); ++port) {
    CHECK_EQ(self.next[port], rows[port]);
    used += firings * self.demands[port].count;
  }
  CHECK_EQ(self.rest, std::accumulate(rows.begin(), rows.end(), std::int64_t{0}) - used);
}

inline Demand exact(std::int64_t count) { return {.count = count}; }
inline Demand at_least(std::int64_t count) { return {.count = count, .kind = Demand::Kind::AtLeast}; }

// One source with a chain for each port of the barrier, and a sink behind it.
inline OperatorId barrier(Rig& rig, const std::vector<Demand>& demands, const std::vector<std::int64_t>& rows, std::size_t length,
                          const char* models) {
  std::vector<OperatorId> ends;
  for (const std::int64_t count : rows) {
    const OperatorId from = rig.add(source(static_cast<std::int64_t>(ends.size()), count));
    ends.push_back(behind(rig, from, length, models));
  }
  TestOperator spec = zip(demands);
  spec.model = model_for(models, length);
  const OperatorId id = rig.add(std::move(spec));
  for (std::size_t port = 0; port < ends.size(); ++port) rig.scheduler.connect(ends[port], id, 0, port);
  TestOperator last = sink();
  last.model = model_for(models, length + 1);
  rig.scheduler.connect(id, rig.add(std::move(last)));
  return id;
}

// Even rows to output port 0, odd ones to port 1, in runs; each numbered anew.
inline TestOperator split() {
  TestOperator spec{.name = "split", .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.outputs.push_back(row_schema());
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context* context) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(opaque));
    Row odd[64];
    std::int64_t odds = 0;
    std::int64_t evens = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      Row row = static_cast<const Row*>(in)[index];
      const bool is_odd = row.sequence % 2 != 0;
      row.sequence /= 2;
      if (!is_odd) {
        static_cast<Row*>(out)[evens++] = row;
        continue;
      }
      odd[odds++] = row;
      if (odds < 64) continue;
      if (rel_emit(context, 1, odd, odds) != 0) return REL_STOPPED;
      odds = 0;
    }
    if (rel_emit(context, 1, odd, odds) != 0) return REL_STOPPED;
    return evens;
  };
  return spec;
}

// Two inputs of different records, taken as they come: rows, and wide rows that carry three of them.
struct Wide {
  Row rows[3];
};

inline std::shared_ptr<const Schema> wide_schema() {
  std::vector<Field> fields;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) fields.push_back({.name = name, .type = Type::Int64, .format = "l"});
  return std::make_shared<Schema>(fields);
}

inline TestOperator widen() {
  TestOperator spec{.name = "widen", .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {wide_schema()}};
  spec.flags = REL_ONE_TO_ONE;
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* opaque, rel_context*) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(opaque));
    for (std::int64_t index = 0; index < n; ++index) {
      const Row row = static_cast<const Row*>(in)[index];
      for (std::int64_t part = 0; part < 3; ++part) static_cast<Wide*>(out)[index].rows[part] = {row.stream, 3 * row.sequence + part};
    }
    return n;
  };
  return spec;
}

inline TestOperator either() {
  TestOperator spec{
      .name = "either", .flags = REL_IN_PLACE, .state = std::make_shared<Guarded>(), .inputs = {row_schema()}, .outputs = {row_schema()}};
  spec.inputs.push_back(wide_schema());
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t capacity, void* opaque, rel_context* context) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(opaque));
    std::int64_t count = 0;
    if (rel_firings(context) != -1 || rel_staged(context, rel_port(context), &count) != in || count != n) return REL_FAILED(0);
    if (rel_port(context) == 0) {
      if (out != in) std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(Row));
      return n;
    }
    std::int64_t made = 0;
    for (std::int64_t index = 0; index < n; ++index) {
      for (const Row row : static_cast<const Wide*>(in)[index].rows) {
        if (made == capacity) {
          if (rel_flush(context, made) != 0) return REL_STOPPED;
          made = 0;
        }
        static_cast<Row*>(out)[made++] = row;
      }
    }
    return made;
  };
  return spec;
}

}  // namespace rayelastic::check
