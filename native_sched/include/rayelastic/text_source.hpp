// Lines of text files as records of one string field, viewing into the chunks that were read: nothing is copied but a
// line that two chunks share. Lines end at \n, \r\n or \r, as with Python's universal newlines and in Spark; a last line
// without an end counts. Bytes that aren't UTF-8 become U+FFFD as with CPython's errors="replace"; a byte order mark is kept.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator.hpp"

namespace rayelastic {

inline constexpr std::size_t kTextChunkBytes = 1 << 20;

// `output` has one string field. A file that can't be read while running fails the operator, naming the file.
[[nodiscard]] OperatorSpec make_text_source(std::string name, std::shared_ptr<const Schema> output, std::vector<std::string> paths,
                                            std::size_t chunk_bytes = kTextChunkBytes);

}  // namespace rayelastic
