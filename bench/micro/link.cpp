// How fast a link is between two processes of one node: 64 KiB frames over a Unix socket and over TCP, with checksums and
// without, alternated, medians. Issue: at least 1.5 GB/s. The payload is 64-byte records, or records with a 1,000-byte text.
// The processor time of each side per GB tells on a busy machine what an idle one would reach.
//   bench_link [seconds per measurement] [rounds]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rayelastic/link.hpp"

using namespace rayelastic;
using Clock = std::chrono::steady_clock;

namespace {

class Context : public rel_context {
 public:
  bool flush(std::int64_t) override {
    attached = ChunkRef();
    return true;
  }
  void finish() override { finished = true; }
  void* allocate(std::size_t) override { return nullptr; }
  void attach(Chunk* chunk) override { attached = ChunkRef::share(chunk); }
  void fail(std::string text) override { message = std::move(text); }
  bool keep_text(void*, const char*, std::uint32_t) override { return false; }
  std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark) override {}
  bool stopping() const override { return false; }
  std::string message;
  bool finished = false;
  ChunkRef attached;
};

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "link bench: %s\n", what.c_str());
  std::exit(1);
}

void connect_pair(bool tcp, int& a, int& b) {
  int both[2];
  if (!tcp) {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) give_up("no socket pair");
    a = both[0], b = both[1];
    return;
  }
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    give_up("can't listen");
  }
  a = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(a, reinterpret_cast<sockaddr*>(&address), length) != 0) give_up("can't connect");
  b = ::accept(listener, nullptr, nullptr);
  ::close(listener);
}

struct Case {
  const char* name;
  bool tcp, text, checksum;
  std::size_t run_bytes;                                                       // what the operator is given at once
  std::vector<double> gigabytes_per_second, sender_seconds, receiver_seconds;  // the latter two per GB
};

double processor_seconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return processor_seconds(usage);
}

double median(std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  return figures[figures.size() / 2];
}

std::shared_ptr<const Schema> schema_of(bool text) {
  std::vector<Field> fields;
  if (text) {
    fields.push_back({.name = "text", .type = Type::Binary, .nullable = false, .format = "z"});
  } else {
    for (int i = 0; i < 8; ++i)
      fields.push_back({.name = std::string(1, static_cast<char>('a' + i)), .type = Type::Int64, .nullable = false, .format = "l"});
  }
  return std::make_shared<const Schema>(std::move(fields));
}

void receive(int fd, const Case& measured) {
  LinkOptions options;
  options.name = "bench";
  options.checksum = measured.checksum;
  const OperatorSpec in = link_in("in", schema_of(measured.text), Link::over(fd, options));
  Context context;
  std::vector<std::byte> out(256 * in.output->record_size());
  std::int64_t result = 0;
  while (!context.finished && result >= 0) result = in.process(nullptr, 0, out.data(), 256, in.state.get(), &context);
  if (!context.finished) give_up("receiver: " + context.message);
}

void measure(Case& measured, double seconds) {
  int a, b;
  connect_pair(measured.tcp, a, b);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(a);
    receive(b, measured);
    std::_Exit(0);
  }
  ::close(b);
  LinkOptions options;
  options.name = "bench";
  options.checksum = measured.checksum;
  const auto link = Link::over(a, options);
  const auto schema = schema_of(measured.text);
  const OperatorSpec out = link_out("out", schema, link);
  const std::string text(4096, 'x');
  const std::size_t per_record = measured.text ? schema->record_size() + 1000 : schema->record_size();
  const std::size_t count = measured.run_bytes / per_record;
  std::vector<std::byte> run(count * schema->record_size());
  for (std::size_t i = 0; measured.text && i < count; ++i) {
    const StringView view(text.data() + i, 1000);
    std::memcpy(run.data() + i * schema->record_size(), static_cast<const void*>(&view), sizeof(view));
  }
  Context context;
  const auto start = Clock::now();
  const double used = processor_seconds();
  std::int64_t result = 0;
  while (result == 0 && std::chrono::duration<double>(Clock::now() - start).count() < seconds) {
    for (int i = 0; i < 16 && result == 0; ++i)
      result = out.process(run.data(), static_cast<std::int64_t>(count), nullptr, 0, out.state.get(), &context);
  }
  if (result == 0) result = out.process(nullptr, 0, nullptr, 0, out.state.get(), &context);  // until the receiver has consumed everything
  const double took = std::chrono::duration<double>(Clock::now() - start).count();
  if (result != 0) give_up("sender: " + context.message);
  const double gigabytes = static_cast<double>(link->counters().bytes_sent) / 1e9;
  measured.sender_seconds.push_back((processor_seconds() - used) / gigabytes);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (status != 0) give_up("the receiver failed");
  measured.receiver_seconds.push_back(processor_seconds(usage) / gigabytes);
  measured.gigabytes_per_second.push_back(gigabytes / took);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.5;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::vector<Case> cases = {
      {"unix, 64-byte records, 64 KiB runs", false, false, true, 64 << 10, {}, {}, {}},
      {"tcp,  64-byte records, 64 KiB runs", true, false, true, 64 << 10, {}, {}, {}},
      {"unix, 64-byte records, 64 KiB runs, no checksum", false, false, false, 64 << 10, {}, {}, {}},
      {"tcp,  64-byte records, 64 KiB runs, no checksum", true, false, false, 64 << 10, {}, {}, {}},
      {"unix, 1,000-byte texts, 64 KiB runs", false, true, true, 64 << 10, {}, {}, {}},
      {"tcp,  1,000-byte texts, 64 KiB runs", true, true, true, 64 << 10, {}, {}, {}},
      {"unix, 64-byte records, 16 KiB runs", false, false, true, 16 << 10, {}, {}, {}},
      {"unix, 64-byte records, 1 KiB runs", false, false, true, 1 << 10, {}, {}, {}},
  };
  for (int round = 0; round < rounds; ++round) {
    for (Case& one : cases) measure(one, seconds);
  }
  std::printf("%-50s %28s %30s\n", "", "GB/s: median, least, most", "CPU s per GB: sender, receiver");
  for (const Case& one : cases) {
    const auto& figures = one.gigabytes_per_second;
    std::printf("%-50s %12.2f %7.2f %7.2f %22.2f %7.2f\n", one.name, median(figures), *std::min_element(figures.begin(), figures.end()),
                *std::max_element(figures.begin(), figures.end()), median(one.sender_seconds), median(one.receiver_seconds));
  }
}
