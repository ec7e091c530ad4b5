#include "operators/line_reader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "rayelastic/text/text.h"

namespace rayelastic {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // as LONGEST_LINE of byte_streams.py

// Where the last complete line of text[0, bytes) ends. A \r at the very end isn't the end yet: \n may follow.
std::size_t end_of_lines(const char* text, std::size_t bytes) noexcept {
  std::size_t end = bytes > 0 && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
  while (end > 0 && text[end - 1] != '\n' && text[end - 1] != '\r') --end;
  return end;
}

// How files of other kinds begin that are no text: gzip, bzip2, xz, zstd (with its skippable frames, too), lz4, compress, zip.
// And text of UTF-16 or UTF-32, which a byte order mark tells. In a pattern '#' stands for a digit from 1, '%' for a byte from 0x50
// to 0x5f.
constexpr std::array kPacked = {"\x1f\x8b"sv,      "BZh#1AY&SY"sv,       "BZh#\x17\x72\x45\x38\x50\x90"sv,
                                "\xfd\x37zXZ\0"sv, "\x28\xb5\x2f\xfd"sv, "%*M\x18"sv,
                                "\x04\"M\x18"sv,   "\x1f\x9d"sv,         "PK\x03\x04"sv,
                                "PK\x05\x06"sv,    "\xff\xfe"sv,         "\xfe\xff"sv,
                                "\0\0\xfe\xff"sv};
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

enum class Begins : std::uint8_t { No, Perhaps, Yes };  // Perhaps: as far as it goes

Begins begins(std::string_view text, std::string_view pattern) noexcept {
  const std::size_t common = std::min(text.size(), pattern.size());
  for (std::size_t i = 0; i < common; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const char wanted = pattern[i];
    const bool fits = wanted == '#' ? byte >= '1' && byte <= '9' : wanted == '%' ? byte >> 4 == 5 : text[i] == wanted;
    if (!fits) return Begins::No;
  }
  return common == pattern.size() ? Begins::Yes : Begins::Perhaps;
}

Begins is_packed(std::string_view text) noexcept {
  Begins found = Begins::No;
  for (const std::string_view pattern : kPacked) found = std::max(found, begins(text, pattern));
  return found;
}

// FNV-1a over the first and the last bytes of file[0, size).
std::uint64_t edges_of(int file, off_t size) noexcept {
  constexpr off_t kEdge = 4096;
  std::array<char, kEdge> bytes;
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const off_t at : {off_t{0}, std::max(off_t{0}, size - kEdge)}) {
    const ssize_t got = ::pread(file, bytes.data(), static_cast<std::size_t>(std::min(kEdge, size - at)), at);
    for (ssize_t i = 0; i < got; ++i) hash = (hash ^ static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace

FileIdentity::FileIdentity(int file) {
  struct stat about{};
  if (::fstat(file, &about) == 0) take(about);
  if (regular_) edges_ = edges_of(file, size_);
}

FileIdentity::FileIdentity(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0) take(about);
}

void FileIdentity::take(const struct stat& about) noexcept {
  regular_ = S_ISREG(about.st_mode);
  device_ = about.st_dev;
  inode_ = about.st_ino;
  size_ = about.st_size;
  written_ = about.st_mtim;
}

std::string FileIdentity::change(int file, const std::string& path) const {
  struct stat now{};
  if (!regular_) return {};
  if (::stat(path.c_str(), &now) != 0) return "was removed";
  if (now.st_dev != device_ || now.st_ino != inode_) return "was replaced by another file";
  if (now.st_size < size_) return "had " + std::to_string(size_) + " bytes and has " + std::to_string(now.st_size) + " now";
  const bool touched = now.st_mtim.tv_sec != written_.tv_sec || now.st_mtim.tv_nsec != written_.tv_nsec;
  const bool anew = now.st_size == size_ ? touched : edges_ != 0 && edges_of(file, size_) != edges_;
  return anew ? "was written anew" : "";
}

LineReader::LineReader(TextFiles files, std::size_t chunk_bytes)
    : files_(std::move(files)), chunk_bytes_(std::max<std::size_t>(chunk_bytes, 16)) {
  for (const std::string& path : files_.paths) at_start_of_all_.emplace_back(path);
  if (::pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) throw std::system_error(errno, std::generic_category(), "text source");
}

LineReader::~LineReader() {
  close_file();
  ::close(wake_[0]);
  ::close(wake_[1]);
}

void LineReader::interrupt() noexcept {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = ::write(wake_[1], &byte, 1);  // a full pipe is an interruption, too
}

void LineReader::seek(std::size_t file, std::uint64_t byte) noexcept {
  next_path_ = std::min(file, files_.paths.size());
  start_ = byte;
}

void LineReader::close_file() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  stream_.reset();
}

// Fails if the file isn't what it was: the end of what is left of it isn't the end of its rows.
void LineReader::check(const FileIdentity& before) const {
  if (file_ < 0) return;  // a stream looks for itself
  const std::string& path = files_.paths[next_path_ - 1];
  const std::string change = before.change(file_, path);
  if (!change.empty()) throw std::runtime_error("text file '" + path + "' " + change + " while it was read");
}

void LineReader::fail(const std::string& what, int error) const {
  std::string message = what + " '" + files_.paths[next_path_ - 1] + "'";
  if (error != 0) message += ": " + std::generic_category().message(error);
  throw std::runtime_error(message);
}

bool LineReader::open_next(std::uint64_t lines) {
  if (next_path_ == files_.paths.size()) return false;
  const std::string& path = files_.paths[next_path_++];
  at_start_ = start_ == 0;
  lines_before_ = at_start_ ? std::optional(lines) : std::nullopt;
  ends_ = std::exchange(start_, 0);
  if (files_.all_by_stream || path.find("://") != std::string::npos) {
    open_stream();
    return true;
  }
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may have no writer yet
  if (file_ < 0) fail("can't open text file", errno);
  struct stat about{};
  seekable_ = ::fstat(file_, &about) == 0 && S_ISREG(about.st_mode);
  check(at_start_of_all_[next_path_ - 1]);
  identity_ = FileIdentity(file_);
  if (ends_ > 0 && ::lseek(file_, static_cast<off_t>(ends_), SEEK_SET) < 0) fail("can't go to where it was in text file", errno);
  (void)::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
  return true;
}

void LineReader::open_stream() {
  struct stat about{};
  if (file_ >= 0 && (::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)))
    fail("compressed bytes, or UTF-16, come out of a pipe: decode them first, such as by zcat or iconv,", 0);
  if (!files_.open) fail("nobody knows how to open", 0);
  close_file();
  seekable_ = false;
  stream_ = files_.open(files_.paths[next_path_ - 1]);
}

// The first bytes of a file tell what it is: how many of them are text that can be read now, without a byte order mark; nothing if
// more of them are needed, or if the file has to be opened as what it is.
std::optional<std::size_t> LineReader::begun(char* data, std::size_t filled, bool ended) {
  const std::string_view text(data, filled);
  const Begins packed = stream_ == nullptr ? is_packed(text) : Begins::No;
  if (packed == Begins::Yes) {
    open_stream();
    carry_ = {};
    return std::nullopt;
  }
  const Begins mark = begins(text, kByteOrderMark);
  if (!ended && std::max(packed, mark) == Begins::Perhaps) {
    carry_ = text;
    return std::nullopt;
  }
  at_start_ = false;
  const std::size_t left_out = mark == Begins::Yes ? kByteOrderMark.size() : 0;
  ends_ += left_out;
  std::memmove(data, data + left_out, left_out == 0 ? 0 : filled - left_out);
  return filled - left_out;
}

// False when interrupted.
bool LineReader::wait_for_bytes() {
  pollfd ready[2] = {{wake_[0], POLLIN, 0}, {file_, POLLIN, 0}};
  const int few = stream_ != nullptr ? 1 : 2;  // a stream waits by itself
  while (::poll(ready, static_cast<nfds_t>(few), stream_ != nullptr ? 0 : -1) < 0) {
    if (errno != EINTR) fail("can't wait for text file", errno);
  }
  return ready[0].revents == 0;
}

std::size_t LineReader::read_some(char* target, std::size_t bytes) {
  if (stream_ != nullptr) return stream_->read(target, bytes);
  while (true) {
    const ssize_t got = ::read(file_, target, bytes);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN) fail("can't read text file", errno);
  }
}

namespace {

// Lines with bytes that aren't UTF-8.
std::int64_t ill_formed(std::string_view text) noexcept {
  std::int64_t count = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    count += rel_text_is_valid(line.data(), static_cast<std::int64_t>(line.size())) == 0 ? 1 : 0;
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return count;
}

}  // namespace

ChunkRef LineReader::give(ChunkRef chunk, std::size_t bytes) {
  repaired_ = 0;
  const auto length = static_cast<std::int64_t>(bytes);
  if (rel_text_is_valid(chunk->data(), length) != 0) {
    if (bytes < chunk->size() / 4) {  // a small file or a trickling pipe: queues would count a chunk full of nothing
      const ChunkRef large = std::exchange(chunk, Chunk::allocate(bytes));
      std::memcpy(chunk->data(), large->data(), bytes);
    }
    text_ = {chunk->data(), bytes};
    return chunk;
  }
  repaired_ = ill_formed({chunk->data(), bytes});
  ChunkRef repaired = Chunk::allocate(3 * bytes);
  text_ = {repaired->data(), static_cast<std::size_t>(rel_text_repair(chunk->data(), length, repaired->data()))};
  return repaired;
}

// Where the next line is in its file, in words.
std::string LineReader::place_of(std::uint64_t lines) const {
  if (lines_before_.has_value()) return "in line " + std::to_string(lines - *lines_before_ + 1);
  return "behind byte " + std::to_string(ends_);
}

ChunkRef LineReader::next(std::uint64_t lines) {
  std::size_t wanted = chunk_bytes_;
  while (file_ >= 0 || stream_ != nullptr || open_next(lines)) {
    wanted = std::max(wanted, 2 * carry_.size());
    ChunkRef chunk = Chunk::allocate(wanted);
    char* data = chunk->data();
    std::size_t filled = carry_.size();
    if (filled > 0) std::memcpy(data, carry_.data(), filled);
    if (!wait_for_bytes()) return {};
    const std::size_t got = read_some(data + filled, wanted - filled);
    filled += got;
    if (at_start_) {
      rest_ = chunk;
      const std::optional<std::size_t> text = begun(data, filled, got == 0);
      if (!text.has_value()) continue;
      filled = *text;
    }
    std::size_t end = end_of_lines(data, filled);
    if (got == 0) {  // the end of the file ends its last line
      check(identity_);
      close_file();
      end = filled;
    }
    if (end == 0 && filled > kLongestLine) fail("more than 64 MiB without a line end " + place_of(lines) + " of text file", 0);
    rest_ = chunk;
    carry_ = {data + end, filled - end};
    if (end > 0) {
      begins_ = std::exchange(ends_, ends_ + end);
      return give(std::move(chunk), end);
    }
  }
  rest_ = {};
  carry_ = {};
  return {};
}

}  // namespace rayelastic
