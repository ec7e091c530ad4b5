// Some keys of a table: those of some hashes that it had at a moment (Joker J16). Made in one look over the table, so that the rest of the work
// on them goes by their places and takes no longer the more other keys there are.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rayelastic/record/hash_ranges.hpp"

namespace rayelastic {

struct KeySelection {
  HashRanges of;
  std::vector<void*> slots =
      {};  // in the order of their places, which never move; whoever comes by looks whether the key is still one of them
};

}  // namespace rayelastic
