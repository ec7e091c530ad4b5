// What the tests of links have in common: schemas, two connected sockets, the engine's side of an operator, and a peer of any manners.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "check.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/net/link.hpp"

namespace rayelastic::check {

inline std::shared_ptr<const Schema> numbers() {
  return std::make_shared<const Schema>(std::vector<Field>{{.name = "value", .type = Type::Int64, .nullable = false, .format = "l"}});
}

inline std::shared_ptr<const Schema> words() {
  return std::make_shared<const Schema>(std::vector<Field>{{.name = "value", .type = Type::Int64, .nullable = false, .format = "l"},
                                                           {.name = "word", .type = Type::String, .nullable = false, .format = "u"}});
}

struct Sockets {
  int a = -1, b = -1;
  Sockets() {
    int both[2];
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
    a = both[0], b = both[1];
  }
};

// Long enough for a sanitizer on a busy machine, and so long that a wake-up that gets lost isn't made good by the next heartbeat.
inline LinkOptions options(const char* peer) {
  LinkOptions chosen;
  chosen.name = "a->b";
  chosen.peer = peer;
  chosen.heartbeat = std::chrono::seconds(60);
  chosen.silence = chosen.first_silence = std::chrono::seconds(600);
  return chosen;
}

// The engine's side: hands each flushed run to a function, keeps nothing.
class Context : public rel_context {
 public:
  explicit Context(std::size_t stride, std::size_t records = 64) : out(stride * records), capacity(records) {}
  std::function<bool(const std::byte*, std::size_t)> on_run = [](const std::byte*, std::size_t) { return true; };
  std::vector<Mark> marks;
  std::string message;
  bool finished = false;
  std::vector<std::byte> out;
  std::size_t capacity;

  bool flush(std::int64_t n) override {
    const bool go_on = on_run(out.data(), static_cast<std::size_t>(n));
    attached.clear();
    return go_on;
  }
  void finish() override { finished = true; }
  void* allocate(std::size_t) override { return nullptr; }
  void attach(Chunk* chunk) override { attached.push_back(ChunkRef::share(chunk)); }
  void fail(std::string text) override { message = std::move(text); }
  bool keep_text(void*, const char*, std::uint32_t) override { return false; }
  std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark mark) override { marks.push_back(mark); }
  bool stopping() const override { return false; }

  std::int64_t run_source(const std::shared_ptr<Operator>& op) {
    std::int64_t result = 0;
    while (!finished && result >= 0) result = op->process(nullptr, 0, out.data(), static_cast<std::int64_t>(capacity), this);
    return result;
  }
  std::int64_t give(const std::shared_ptr<Operator>& op, const void* records, std::size_t n) {
    return op->process(static_cast<const std::byte*>(records), static_cast<std::int64_t>(n), nullptr, 0, this);
  }
  std::int64_t end(const std::shared_ptr<Operator>& op) { return op->finish(nullptr, 0, this); }

 private:
  std::vector<ChunkRef> attached;
};

// A peer that sends what it likes.
class RawPeer {
 public:
  explicit RawPeer(int descriptor) : fd(descriptor) {}
  ~RawPeer() { hang_up(); }
  void hang_up() {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  void send(const void* data, std::size_t bytes) const { (void)!::send(fd, data, bytes, MSG_NOSIGNAL); }
  void send(FrameHeader header, const std::vector<std::byte>& records = {}, const std::vector<char>& heap = {}, bool checksum = true) {
    header.sequence = sequence++;
    header.checksummed = checksum;
    if (checksum) header.checksum = checksum_of(header, records, heap);
    const HeaderBytes bytes = encode_header(header);
    send(bytes.data(), bytes.size());
    send(records.data(), records.size());
    send(heap.data(), heap.size());
  }
  void hello(const Schema& schema) {
    send({.kind = FrameKind::Hello,
          .record_bytes = static_cast<std::uint32_t>(schema.record_size()),
          .value = static_cast<std::int64_t>(fingerprint(schema))});
  }
  FrameHeader records_header(const Schema& schema, std::uint32_t count, std::uint32_t heap_bytes = 0) const {
    return {.kind = FrameKind::Records,
            .records = count,
            .record_bytes = static_cast<std::uint32_t>(schema.record_size()),
            .heap_bytes = heap_bytes};
  }
  int fd;
  std::uint64_t sequence = 0;
};

}  // namespace rayelastic::check
