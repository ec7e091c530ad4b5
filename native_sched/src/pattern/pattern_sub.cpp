// rel_pattern_sub of pattern.h: matches one after another as CPython's Modules/_sre/sre.c (pattern_subx), the pieces of the replacement
// between them. What it makes is kept in one buffer for each thread.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/pattern/pattern.h"

namespace {

struct Piece {
  std::int32_t group;  // -1: a literal
  std::string_view literal;
};

std::vector<Piece> pieces_of(std::string_view written) {
  std::vector<Piece> pieces;
  while (written.size() >= 2 * sizeof(std::int32_t)) {
    std::int32_t head[2];
    std::memcpy(head, written.data(), sizeof head);
    const auto size = static_cast<std::size_t>(head[1]);
    pieces.push_back({head[0], written.substr(sizeof head, size)});
    written.remove_prefix(sizeof head + size);
  }
  return pieces;
}

std::int64_t replaced(const void* pattern, std::string_view text, const std::vector<Piece>& pieces, std::int64_t count, std::string& made) {
  std::int32_t last_group = 0;
  for (const Piece& piece : pieces) last_group = std::max(last_group, piece.group);
  std::vector<std::int64_t> spans(2 * (static_cast<std::size_t>(last_group) + 1));
  const auto size = static_cast<std::int64_t>(text.size());
  std::int64_t at = 0;
  std::int32_t mode = REL_PATTERN_SEARCH;
  const auto add = [&](std::int64_t from, std::int64_t to) {
    made.append(text.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
  };
  for (std::int64_t done = 0; count == 0 || done < count; ++done) {
    const std::int64_t found = rel_pattern_find(pattern, text.data(), size, at, mode, last_group + 1, spans.data());
    if (found < 0) return -1;
    if (found == 0) break;
    add(at, spans[0]);
    for (const Piece& piece : pieces) {
      if (piece.group < 0) {
        made.append(piece.literal);
      } else if (const auto group = 2 * static_cast<std::size_t>(piece.group); spans[group] >= 0) {
        add(spans[group], spans[group + 1]);
      }
    }
    at = spans[1];
    mode = spans[0] == spans[1] ? REL_PATTERN_ADVANCE : REL_PATTERN_SEARCH;
  }
  add(at, size);
  return static_cast<std::int64_t>(made.size());
}

}  // namespace

std::int64_t rel_pattern_sub(const void* pattern, const char* text, std::int64_t bytes, const char* replacement,
                             std::int64_t replacement_bytes, std::int64_t count, const char** out) {
  thread_local std::string made;
  try {
    made.clear();
    const std::string_view whole{text, static_cast<std::size_t>(bytes)};
    const auto pieces = pieces_of({replacement, static_cast<std::size_t>(replacement_bytes)});
    const std::int64_t size = replaced(pattern, whole, pieces, count, made);
    *out = made.data();
    return size;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}
