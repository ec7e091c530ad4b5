// Reads files as chunks of whole lines, one file after the other. Also reads pipes: it waits for more data until it is interrupted. Knows
// no record.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/operators/text_source.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

// A regular file as it was when reading began: the bytes at its start and before its end, to distinguish a file that
// grows from one that was written anew.
class FileIdentity {
 public:
  FileIdentity() = default;  // of anything else: never changed
  explicit FileIdentity(int file);
  explicit FileIdentity(const std::string& path);  // not looked into: one that grows may be written anew

  // What happened to the file since, in words; empty if nothing did, or if it has grown.
  [[nodiscard]] std::string change(int file, const std::string& path) const;

 private:
  void take(const struct stat& about) noexcept;

  bool regular_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = 0;
  timespec written_{};
  std::uint64_t edges_ = 0;  // a hash of its first and last bytes; 0: not taken
};

class LineReader {
 public:
  // Throws std::system_error if the descriptors for the interruption can't be had.
  LineReader(TextFiles files, std::size_t chunk_bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next chunk of whole lines, behind so many of them, as valid UTF-8, whose text is text(); empty at the end or when interrupted. Throws
  // std::runtime_error naming a file that can't be read, has shrunk or changed since, or has a line of 64 MiB. A byte order mark is left out.
  [[nodiscard]] ChunkRef next(std::uint64_t lines);
  [[nodiscard]] std::string_view text() const noexcept { return text_; }  // of the last chunk; \r\n never split
  // How many of its lines had bytes that aren't UTF-8.
  [[nodiscard]] std::int64_t repaired() const noexcept { return repaired_; }

  // Of the last chunk's text: the number of its file, whether that can be sought in, and where in it the text begins.
  [[nodiscard]] std::size_t file() const noexcept { return next_path_ - 1; }
  [[nodiscard]] bool is_seekable() const noexcept { return seekable_; }
  [[nodiscard]] std::uint64_t byte() const noexcept { return begins_; }
  // The first chunk will be of what begins there.
  void seek(std::size_t file, std::uint64_t byte) noexcept;

  void interrupt() noexcept;  // from any thread

 private:
  [[nodiscard]] bool open_next(std::uint64_t lines);
  [[nodiscard]] std::string place_of(std::uint64_t lines) const;
  void open_stream();
  [[nodiscard]] std::optional<std::size_t> begun(char* data, std::size_t filled, bool ended);
  void check(const FileIdentity& before) const;
  void close_file() noexcept;
  [[nodiscard]] bool wait_for_bytes();
  [[nodiscard]] std::size_t read_some(char* target, std::size_t bytes);
  [[nodiscard]] ChunkRef give(ChunkRef chunk, std::size_t bytes);
  [[noreturn]] void fail(const std::string& what, int error) const;

  TextFiles files_;
  std::size_t chunk_bytes_;
  std::size_t next_path_ = 0;
  int file_ = -1;
  std::unique_ptr<ByteStream> stream_;         // instead of file_
  std::uint64_t begins_ = 0;                   // of the last chunk's text: where in its file
  std::uint64_t ends_ = 0;                     // and where it ends
  std::uint64_t start_ = 0;                    // where to begin in the next file
  std::optional<std::uint64_t> lines_before_;  // the file, if it is read from its start
  bool seekable_ = false;                      // the file
  FileIdentity identity_;                      // of it
  std::vector<FileIdentity> at_start_of_all_;  // of all files, when the source was made
  bool at_start_ = false;                      // of a file: what it is hasn't been told from its first bytes yet
  int wake_[2] = {-1, -1};                     // a pipe: a byte in it is the interruption
  ChunkRef rest_;                              // the chunk that ends with the beginning of an unfinished line
  std::string_view carry_;                     // that beginning
  std::string_view text_;
  std::int64_t repaired_ = 0;
};

}  // namespace rayelastic
