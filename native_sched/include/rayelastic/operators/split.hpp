// Operators that give each record to one of several output ports, all of the input's schema: in turn, by the hash of a key, or by what a
// compiled function says. Order is kept within each port.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

// Throw std::invalid_argument, naming the operator: no ports, unknown keys, or a choice that isn't a function from the schema to one int64.
[[nodiscard]] std::shared_ptr<Operator> make_round_robin(std::string name, std::shared_ptr<const Schema> schema, std::size_t ports);
[[nodiscard]] std::shared_ptr<Operator> make_hash_split(std::string name, std::shared_ptr<const Schema> schema,
                                                        std::span<const std::string> keys, std::size_t ports);
// `choice` is ONE_TO_ONE without state: the number of the port for each record. A number that no port has fails the PE.
[[nodiscard]] std::shared_ptr<Operator> make_choice_split(const std::shared_ptr<Operator>& choice, std::size_t ports);

}  // namespace rayelastic
