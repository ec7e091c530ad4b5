#include "line_reader.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "rayelastic/text.h"

namespace rayelastic {

namespace {

constexpr std::size_t kLongestLine = std::size_t{1} << 30;

// Where the last complete line of text[0, bytes) ends. A \r at the very end isn't the end yet: \n may follow.
std::size_t end_of_lines(const char* text, std::size_t bytes) noexcept {
  std::size_t end = bytes > 0 && text[bytes - 1] == '\r' ? bytes - 1 : bytes;
  while (end > 0 && text[end - 1] != '\n' && text[end - 1] != '\r') --end;
  return end;
}

}  // namespace

LineReader::LineReader(std::vector<std::string> paths, std::size_t chunk_bytes)
    : paths_(std::move(paths)), chunk_bytes_(std::max<std::size_t>(chunk_bytes, 16)) {
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

void LineReader::close_file() noexcept {
  if (file_ >= 0) ::close(std::exchange(file_, -1));
}

void LineReader::fail(const std::string& what, int error) const {
  std::string message = what + " '" + paths_[next_path_ - 1] + "'";
  if (error != 0) message += ": " + std::generic_category().message(error);
  throw std::runtime_error(message);
}

bool LineReader::open_next() {
  if (next_path_ == paths_.size()) return false;
  file_ = ::open(paths_[next_path_++].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe may have no writer yet
  if (file_ < 0) fail("can't open text file", errno);
  (void)::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
  return true;
}

// False when interrupted.
bool LineReader::wait_for_bytes() {
  pollfd ready[2] = {{wake_[0], POLLIN, 0}, {file_, POLLIN, 0}};
  while (::poll(ready, 2, -1) < 0) {
    if (errno != EINTR) fail("can't wait for text file", errno);
  }
  return ready[0].revents == 0;
}

std::size_t LineReader::read_some(char* target, std::size_t bytes) {
  while (true) {
    const ssize_t got = ::read(file_, target, bytes);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN) fail("can't read text file", errno);
  }
}

ChunkRef LineReader::give(ChunkRef chunk, std::size_t bytes) {
  const auto length = static_cast<std::int64_t>(bytes);
  if (rel_text_is_valid(chunk->data(), length) != 0) {
    if (bytes < chunk->size() / 4) {  // a small file or a trickling pipe: queues would count a chunk full of nothing
      const ChunkRef large = std::exchange(chunk, Chunk::allocate(bytes));
      std::memcpy(chunk->data(), large->data(), bytes);
    }
    text_ = {chunk->data(), bytes};
    return chunk;
  }
  ChunkRef repaired = Chunk::allocate(3 * bytes);
  text_ = {repaired->data(), static_cast<std::size_t>(rel_text_repair(chunk->data(), length, repaired->data()))};
  return repaired;
}

ChunkRef LineReader::next() {
  std::size_t wanted = chunk_bytes_;
  while (file_ >= 0 || open_next()) {
    wanted = std::max(wanted, 2 * carry_.size());
    ChunkRef chunk = Chunk::allocate(wanted);
    char* data = chunk->data();
    std::size_t filled = carry_.size();
    if (filled > 0) std::memcpy(data, carry_.data(), filled);
    if (!wait_for_bytes()) return {};
    const std::size_t got = read_some(data + filled, wanted - filled);
    filled += got;
    std::size_t end = end_of_lines(data, filled);
    if (got == 0) {  // the end of the file ends its last line
      close_file();
      end = filled;
    }
    if (end == 0 && filled > kLongestLine) fail("a line of more than 1 GiB in text file", 0);
    rest_ = chunk;
    carry_ = {data + end, filled - end};
    if (end > 0) return give(std::move(chunk), end);
  }
  rest_ = {};
  carry_ = {};
  return {};
}

}  // namespace rayelastic
