// Splits: ordered parts of a stream, each with a watermark of its own, such as the files of a source, the partitions of a topic, and the
// inputs of a union. A source says in band what there is and whose records follow; event_time takes the least of what it knows.
// Operators in between pass the marks on in their order, so only those that keep the order of records may stand there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

enum class SplitChange : std::uint8_t {
  Open,   // there is a split, which may have nothing for a long time
  Waits,  // there is one, whose turn will come: a file behind others
  Now,    // the records that follow are of it
  End,    // nothing more comes of it
};

[[nodiscard]] constexpr Mark split_mark(std::int64_t split, SplitChange change) noexcept {
  return {MarkKind::Split, split << 2 | static_cast<std::int64_t>(change)};
}
[[nodiscard]] constexpr std::int64_t split_of(Mark mark) noexcept { return mark.value >> 2; }
[[nodiscard]] constexpr SplitChange change_of(Mark mark) noexcept { return static_cast<SplitChange>(mark.value & 3); }

// Unites what comes by several input ports, and says by marks which port each record is of: split s of port p is s * ports + p. A port
// whose stream has no splits is one, number 0. Splits of streams that don't tell them in order are left out: `tells` is by port.
// Throws std::invalid_argument, naming the operator.
[[nodiscard]] std::shared_ptr<Operator> make_union(std::string name, std::shared_ptr<const Schema> schema, const std::vector<bool>& tells);

}  // namespace rayelastic
