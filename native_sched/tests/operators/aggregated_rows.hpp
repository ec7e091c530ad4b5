// Rows of tests of aggregates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/operators/aggregate/aggregate.hpp"

namespace rayelastic {

inline std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }
inline Field field(std::string name, Type type, bool nullable = false) { return {std::move(name), type, nullable, "", 0, -1}; }

// {word string, n int64, x float64 or null, note string or null}
inline const auto kInput =
    schema_of({field("word", Type::String), field("n", Type::Int64), field("x", Type::Float64, true), field("note", Type::String, true)});

struct Row {
  StringView word;
  std::int64_t n = 0;
  double x = 0;
  StringView note;
  std::uint64_t valid = 3;  // bit 0: x, bit 1: note
};
static_assert(sizeof(Row) == 56);

inline StringView view(const std::string& text) { return {text.data(), static_cast<std::uint32_t>(text.size())}; }

inline Row row(const std::string& word, std::int64_t n, double x = 0, const std::string& note = "", std::uint64_t valid = 3) {
  return {view(word), n, x, view(note), valid};
}

inline const std::shared_ptr<const Schema> kCounts = schema_of({field("word", Type::String), field("count", Type::Int64)});
inline const std::vector<Aggregate> kCount = {{AggregateFunction::Count, ""}};

}  // namespace rayelastic
