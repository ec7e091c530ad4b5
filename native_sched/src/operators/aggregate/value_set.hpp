// A set of byte strings in one flat piece of memory, kept like a text in a field of a keyed state: it is copied, exported and
// imported with the state, as bytes. Open addressing. Knows nothing of fields or aggregates.
//
//   count, buckets, used bytes of entries, 0 (4 bytes each); then 4 bytes a bucket: offset of an entry + 1, or 0;
//   then the entries: length (4 bytes), bytes, up to a multiple of 4.
#pragma once

#include <cstdint>

#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/text_rooms.hpp"

namespace rayelastic::value_set {

// True: it wasn't in the set. Throws std::length_error for a set that doesn't fit into 4 GiB.
bool insert(StringView& set, TextRooms& rooms, const StringView& value);
[[nodiscard]] std::uint32_t size(const StringView& set) noexcept;
void merge(StringView& into, TextRooms& rooms, const StringView& from);
// Whether bytes from outside, at any address, are a set that the functions above could have made.
[[nodiscard]] bool is_whole(const StringView& bytes);

}  // namespace rayelastic::value_set
