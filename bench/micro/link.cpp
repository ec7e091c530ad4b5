// How fast a link is between two processes of one node: frames of 64 KiB over a Unix socket and over TCP, with checksums and
// without, beside plain send and recv of as much at a time. The payload is 64-byte records, or records with a 1,000-byte text.
// The processor time of each side per GB tells on a busy machine what an idle one would reach.
//
//   bench_link [seconds=0.5] [rounds=5]
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "measure.hpp"
#include "rayelastic/net/link.hpp"

using namespace rayelastic;
using namespace rayelastic::bench;

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
  const char* key;
  const char* what;
  bool tcp, text, checksum;
  std::size_t run_bytes;  // what the operator is given at once
  bool encrypted = false;
  std::vector<double> sender_seconds = {}, receiver_seconds = {};  // of processor time per GB
};

double processor_seconds(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
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

std::shared_ptr<Tls> encrypted(const Case& measured, int fd, Tls::Side side) {
  if (!measured.encrypted) return {};
  auto tls = std::make_shared<Tls>(fd, side, std::string(Tls::kKeyBytes, 'k'));
  while (true) {
    const Tls::Step step = tls->handshake();
    if (step == Tls::Step::Done) return tls;
    if (step == Tls::Step::Failed) give_up("TLS: " + tls->error());
    pollfd ready{fd, static_cast<short>(step == Tls::Step::WantsRead ? POLLIN : POLLOUT), 0};
    (void)::poll(&ready, 1, -1);
  }
}

void receive(int fd, const Case& measured) {
  LinkOptions options;
  options.name = "bench";
  options.checksum = measured.checksum;
  const OperatorSpec in = link_in("in", schema_of(measured.text), Link::over(fd, options, encrypted(measured, fd, Tls::Side::Server)));
  Context context;
  std::vector<std::byte> out(256 * in.output->record_size());
  std::int64_t result = 0;
  while (!context.finished && result >= 0) result = in.process(nullptr, 0, out.data(), 256, in.state.get(), &context);
  if (!context.finished) give_up("receiver: " + context.message);
}

// GB/s of a link.
double through_link(Case& measured, double seconds) {
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
  const auto link = Link::over(a, options, encrypted(measured, a, Tls::Side::Client));
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
  const double used = cpu_seconds();
  std::int64_t result = 0;
  while (result == 0 && seconds_since(start) < seconds) {
    for (int i = 0; i < 16 && result == 0; ++i)
      result = out.process(run.data(), static_cast<std::int64_t>(count), nullptr, 0, out.state.get(), &context);
  }
  if (result == 0) result = out.process(nullptr, 0, nullptr, 0, out.state.get(), &context);  // until the receiver has consumed everything
  const double took = seconds_since(start);
  if (result != 0) give_up("sender: " + context.message);
  const double gigabytes = static_cast<double>(link->counters().bytes_sent) / 1e9;
  measured.sender_seconds.push_back((cpu_seconds() - used) / gigabytes);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (status != 0) give_up("the receiver failed");
  measured.receiver_seconds.push_back(processor_seconds(usage) / gigabytes);
  return gigabytes / took;
}

constexpr std::size_t kPlainBytes = 64 << 10;

// GB/s of plain calls of send and recv.
double through_socket(bool tcp, double seconds) {
  int a, b;
  connect_pair(tcp, a, b);
  std::vector<char> bytes(kPlainBytes, 'x');
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(a);
    while (::recv(b, bytes.data(), bytes.size(), 0) > 0) {
    }
    std::_Exit(0);
  }
  ::close(b);
  const auto start = Clock::now();
  double sent = 0;
  while (seconds_since(start) < seconds) {
    const ssize_t gone = ::send(a, bytes.data(), bytes.size(), 0);
    if (gone <= 0) give_up("can't send");
    sent += static_cast<double>(gone);
  }
  ::close(a);
  int status = 0;
  ::waitpid(child, &status, 0);
  return sent / 1e9 / seconds_since(start);
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings(argc, argv, {{"seconds", 0.5}, {"rounds", 5}});
  const double seconds = settings.number("seconds");
  for (Case each : std::vector<Case>{
           {"unix.64", "Unix socket, 64 B records, 64 KiB runs", false, false, true, 64 << 10},
           {"tcp.64", "TCP, 64 B records, 64 KiB runs", true, false, true, 64 << 10},
           {"unix.unchecked", "Unix socket, 64 B records, 64 KiB runs, no checksum", false, false, false, 64 << 10},
           {"tcp.unchecked", "TCP, 64 B records, 64 KiB runs, no checksum", true, false, false, 64 << 10},
           {"tls", "TLS 1.3 over TCP, 64 B records, 64 KiB runs", true, false, true, 64 << 10, true},
           {"unix.text", "Unix socket, 1,000 B texts, 64 KiB runs", false, true, true, 64 << 10},
           {"tcp.text", "TCP, 1,000 B texts, 64 KiB runs", true, true, true, 64 << 10},
           {"unix.16k", "Unix socket, 64 B records, 16 KiB runs", false, false, true, 16 << 10},
           {"unix.1k", "Unix socket, 64 B records, 1 KiB runs", false, false, true, 1 << 10},
       }) {
    Row row{.key = std::string("link.") + each.key,
            .what = std::string("link, ") + each.what,
            .unit = "GB/s",
            .limit_what = each.encrypted ? "the same link without TLS" : "plain send and recv",
            .rounds = alternate(
                settings.whole("rounds"), [&] { return through_link(each, seconds); },
                [&] {
                  if (!each.encrypted) return through_socket(each.tcp, seconds);
                  Case open = each;
                  open.encrypted = false;
                  return through_link(open, seconds);
                })};
    char note[96];
    std::snprintf(note, sizeof note, "processor s/GB: sender %.2f, receiver %.2f", percentile(each.sender_seconds, 0.5),
                  percentile(each.receiver_seconds, 0.5));
    row.note = note;
    print(row);
  }
}
