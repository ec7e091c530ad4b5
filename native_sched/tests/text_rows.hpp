// Rows with texts: their layout and an operator that passes them on.
#pragma once

#include <cstring>

#include "pipeline.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic::check {

struct TextRow {
  std::int64_t sequence = 0;
  StringView text;
};

inline std::shared_ptr<const Schema> text_row_schema() {
  return std::make_shared<Schema>(
      std::vector<Field>{{.name = "sequence", .type = Type::Int64, .format = "l"}, {.name = "text", .type = Type::Binary, .format = "z"}});
}

inline TestOperator text_pass() {
  TestOperator spec{.name = "pass",
                    .flags = REL_ONE_TO_ONE | REL_IN_PLACE,
                    .state = std::make_shared<Guarded>(),
                    .inputs = {text_row_schema()},
                    .outputs = {text_row_schema()}};
  spec.process = [](const void* in, std::int64_t n, void* out, std::int64_t, void* state, rel_context*) -> std::int64_t {
    const Inside inside(*static_cast<Guarded*>(state));
    if (in != out) std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(TextRow));
    return n;
  };
  return spec;
}

}  // namespace rayelastic::check
