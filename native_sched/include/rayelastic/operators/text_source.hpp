// Lines of text files as records of one string field, viewing into the chunks that were read: nothing is copied but a
// line that two chunks share. Lines end at \n, \r\n or \r, as with Python's universal newlines and in Spark; a last line
// without an end counts. Bytes that aren't UTF-8 become U+FFFD as with CPython's errors="replace"; a byte order mark in front is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

inline constexpr std::size_t kTextChunkBytes = 1 << 20;

// What isn't read natively: compressed files, as their first bytes tell, and files that aren't on this machine.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // At most `bytes` bytes; 0 at the end. Throws std::runtime_error that names the file and the place in it.
  [[nodiscard]] virtual std::size_t read(char* target, std::size_t bytes) = 0;
};

// Opens the stream of a path that is a URI or a compressed file. Throws as ByteStream::read.
using OpenStream = std::function<std::unique_ptr<ByteStream>(const std::string& path)>;

struct TextFiles {
  std::vector<std::string> paths = {};
  OpenStream open = {};        // empty: such files fail the operator
  bool all_by_stream = false;  // plain local ones, too
};

// Where a text source is: in front of the line that a byte of a file begins with, behind so many lines.
struct TextPlace {
  std::size_t file = 0;    // its number among the paths
  std::uint64_t byte = 0;  // 0 in what can't be sought in: compressed files, pipes, streams
  std::uint64_t lines = 0;
};

// `output` has one string field. A file that can't be read while running fails the operator, naming the file.
[[nodiscard]] std::shared_ptr<Operator> make_text_source(std::string name, std::shared_ptr<const Schema> output, TextFiles files,
                                                         std::size_t chunk_bytes = kTextChunkBytes);

// Of such an operator, while it is held: the last place in front of where it is that can be sought, at most a chunk away.
[[nodiscard]] std::optional<TextPlace> text_place(const Operator& source);
// Has such an operator begin at a place, before it starts. It gives the lines behind it.
void seek_text(Operator& source, const TextPlace& place);

}  // namespace rayelastic
