// DDSketch (Masson, Rim, Lee: "DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees", VLDB 2019) in one
// flat piece of memory, kept like a text in a field of a keyed state. A value is counted in the bucket ceil(log(|value|) / log(gamma)),
// gamma = (1 + error) / (1 - error): whatever quantile is asked for, the answer is within `error` of the exact one, relatively. Unlike
// the paper's store ours never collapses buckets, so the bound always holds; its size grows with the span of the values (116 buckets of
// 8 bytes for a factor of ten at 1 %). Merging gives the sketch of all values together, exactly.
#pragma once

#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/text_rooms.hpp"

namespace rayelastic::quantile_sketch {

// `value` is no NaN. Infinities count as the largest numbers, and numbers nearer to zero than 1e-300 as zero.
void insert(StringView& sketch, TextRooms& rooms, double value, double error);
// Both of one error.
void merge(StringView& into, TextRooms& rooms, const StringView& from);
// The value of rank floor(probability * (count - 1)) in order, within `error` of it. The sketch isn't empty.
[[nodiscard]] double quantile(const StringView& sketch, double probability, double error) noexcept;

// Whether bytes from outside, at any address, are a sketch of this error that the functions above could have made.
[[nodiscard]] bool is_whole(const StringView& bytes, double error);

}  // namespace rayelastic::quantile_sketch
