#include "rayelastic/text/json_lines.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "rayelastic/text/text.h"

namespace {

constexpr std::size_t kLongWhole = 16;  // digits: 2^53, up to which a double holds each whole number, has as many

bool is_space(char byte) noexcept { return byte == ' ' || byte == '\t' || byte == '\r'; }
bool is_digit(char byte) noexcept { return byte >= '0' && byte <= '9'; }

std::string_view trimmed(std::string_view line) noexcept {
  while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
  while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
  return line;
}

// At most: brackets in texts count, too.
bool is_flat(std::string_view line, std::size_t deepest) noexcept {
  if (line.size() <= 2 * deepest) return true;
  std::size_t open = 0;
  for (const char byte : line) open += static_cast<std::size_t>(byte == '{') + static_cast<std::size_t>(byte == '[');
  return open <= deepest;
}

// Whether what follows each closing bracket goes on with the object that it is in, or the line ends.
bool is_one(std::string_view line) noexcept {
  for (std::size_t at = line.find('}'); at != std::string_view::npos && at + 1 < line.size(); at = line.find('}', at + 1)) {
    std::size_t next = at + 1;
    while (next < line.size() && is_space(line[next])) ++next;
    if (next < line.size() && line[next] != ',' && line[next] != '}' && line[next] != ']') return false;
  }
  return true;
}

bool is_object(std::string_view line, std::size_t deepest) noexcept {
  return line.empty() || (line.front() == '{' && line.back() == '}' && is_flat(line, deepest) && is_one(line));
}

bool has_line(std::string_view lines, std::string_view wanted) noexcept {
  while (true) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (lines.substr(0, end) == wanted) return true;
    if (end == lines.size()) return false;
    lines.remove_prefix(end + 1);
  }
}

// Whether a number that begins at `at` stands behind one of the names.
bool is_named(std::string_view text, std::size_t at, std::string_view names) noexcept {
  if (at > 0 && text[at - 1] == '-') --at;
  while (at > 0 && is_space(text[at - 1])) --at;
  if (at == 0) return false;
  if (text[at - 1] == ',' || text[at - 1] == '[') return has_line(names, {});
  if (text[at - 1] != ':') return false;
  --at;
  while (at > 0 && is_space(text[at - 1])) --at;
  if (at == 0 || text[at - 1] != '"') return false;
  const std::size_t begin = text.rfind('"', at - 2);
  if (at < 2 || begin == std::string_view::npos) return false;
  const std::string_view name = text.substr(begin + 1, at - 2 - begin);
  return name.find('\\') != std::string_view::npos || has_line(names, name);
}

}  // namespace

extern "C" {

int rel_json_are_objects(const char* text, int64_t bytes, int64_t deepest) {
  if (rel_text_is_valid(text, bytes) == 0) return 0;
  std::string_view rest(text, static_cast<std::size_t>(bytes));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (!is_object(trimmed(rest.substr(0, end)), static_cast<std::size_t>(deepest))) return 0;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return 1;
}

int rel_json_has_long_whole(const char* data, int64_t bytes, const char* names_data, int64_t names_bytes) {
  const std::string_view text(data, static_cast<std::size_t>(bytes));
  const std::string_view names(names_data, static_cast<std::size_t>(names_bytes));
  for (std::size_t at = kLongWhole - 1; at < text.size(); at += kLongWhole) {  // each long run of digits has one of these
    if (!is_digit(text[at])) continue;
    std::size_t begin = at;
    while (begin > 0 && is_digit(text[begin - 1])) --begin;
    std::size_t end = at + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    const bool has_fraction = end < text.size() && (text[end] == '.' || text[end] == 'e' || text[end] == 'E');
    if (end - begin >= kLongWhole && !has_fraction && is_named(text, begin, names)) return 1;
  }
  return 0;
}

}  // extern "C"
