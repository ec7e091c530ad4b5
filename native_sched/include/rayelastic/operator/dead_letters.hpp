// Tuples on which an operator's function failed, with why: records of the input's fields, then `error` and `operator`. Knows no
// threads and no Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/schema.hpp"

namespace rayelastic {

class DeadLetters {
 public:
  // Throws std::invalid_argument if `letters` isn't the input's fields and two of text.
  DeadLetters(const Schema& input, std::shared_ptr<const Schema> letters, std::string operator_name);

  // Texts of the record still point to where they are: to be submitted within the same call.
  void add(const std::byte* record, std::string_view error);
  // Emits what was added. False: stop.
  [[nodiscard]] bool submit(rel_context* context, std::int32_t port);

 private:
  const std::shared_ptr<const Schema> letters_;
  const std::string operator_;
  const std::size_t copied_;    // bytes of the fields of the input
  const std::size_t validity_;  // bytes
  const std::size_t validity_from_;
  std::vector<std::byte> records_;
  std::vector<std::string> errors_;
};

}  // namespace rayelastic
