// How fast a link is between two processes of one node: frames of 64 KiB over a Unix socket and over TCP, with checksums and
// without, beside plain send and recv of as much at a time. The payload is 64-byte records, or records with a 1,000-byte text.
// The processor time of each side per GB tells on a busy machine what an idle one would reach. And between two network namespaces, over
// a cable of the kernel's (veth), plain and encrypted: how fast, and how long a lone record is on its way; these rows need root.
//
//   bench_link [seconds=0.5] [rounds=5]
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "rayelastic/net/link.hpp"

using namespace rayelastic;
using namespace rayelastic::bench;

namespace {

class Context : public rel_context {
 public:
  bool flush(std::int64_t count) override {
    if (on_run) on_run(count);
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
  std::function<void(std::int64_t)> on_run;
  std::string message;
  bool finished = false;
  ChunkRef attached;
};

enum class Over { Unix, Tcp, Cable };

// Two network namespaces of this process alone, which end with it, and a cable from one to the other.
class Hosts {
 public:
  static constexpr std::uint32_t kFar = 0x0a530102;  // 10.83.1.2, seen from within only

  Hosts() : here_(own()) {
    if (::unshare(CLONE_NEWNET) != 0) return;
    near_ = own();
    if (::unshare(CLONE_NEWNET) != 0) return;
    far_ = own();
    const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(far_);
    const std::string laid = "ip link add near type veth peer name far netns " + path +
                             " && ip addr add 10.83.1.1/24 dev near && ip link set near up && nsenter --net=" + path +
                             " sh -c 'ip addr add 10.83.1.2/24 dev far && ip link set far up' 2>/dev/null";
    enter(near_);
    made_ = std::system(laid.c_str()) == 0;
    enter(here_);
  }
  [[nodiscard]] bool made() const { return made_; }
  void go_far() const { enter(far_); }
  void go_near() const { enter(near_); }
  void go_home() const { enter(here_); }

  static const Hosts& here() {
    static const Hosts hosts;
    return hosts;
  }

 private:
  static int own() { return ::open("/proc/thread-self/ns/net", O_RDONLY); }
  static void enter(int space) {
    if (::setns(space, CLONE_NEWNET) != 0) give_up("can't enter a network namespace");
  }
  int here_, near_ = -1, far_ = -1;
  bool made_ = false;
};

void connect_pair(Over over, int& a, int& b) {
  int both[2];
  if (over == Over::Unix) {
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, both) != 0) give_up("no socket pair");
    a = both[0], b = both[1];
    return;
  }
  if (over == Over::Cable) Hosts::here().go_far();
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(over == Over::Cable ? Hosts::kFar : INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    give_up("can't listen");
  }
  if (over == Over::Cable) Hosts::here().go_near();
  a = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(a, reinterpret_cast<sockaddr*>(&address), length) != 0) give_up("can't connect");
  b = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  if (over == Over::Cable) Hosts::here().go_home();
}

struct Case {
  const char* key;
  const char* what;
  Over over;
  bool text, checksum;
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

// Calls `each` with every record.
void receive(int fd, const Case& measured, const std::function<void(const std::byte*)>& each = {}) {
  LinkOptions options;
  options.name = "bench";
  options.checksum = measured.checksum;
  const std::shared_ptr<Operator> in =
      link_in("in", schema_of(measured.text), Link::over(fd, options, encrypted(measured, fd, Tls::Side::Server)));
  Context context;
  std::vector<std::byte> out(256 * in->outputs().front()->record_size());
  std::int64_t result = 0;
  if (each) {
    context.on_run = [&](std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) each(out.data() + static_cast<std::size_t>(i) * in->outputs().front()->record_size());
    };
  }
  while (!context.finished && result >= 0) result = in->process(nullptr, 0, out.data(), 256, &context);
  if (!context.finished) give_up("receiver: " + context.message);
}

// GB/s of a link.
double through_link(Case& measured, double seconds) {
  int a, b;
  connect_pair(measured.over, a, b);
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
  const std::shared_ptr<Operator> out = link_out("out", schema, link);
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
    for (int i = 0; i < 16 && result == 0; ++i) result = out->process(run.data(), static_cast<std::int64_t>(count), nullptr, 0, &context);
  }
  if (result == 0) result = out->finish(nullptr, 0, &context);  // until the receiver has consumed everything
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

constexpr timespec kBetween{.tv_sec = 0, .tv_nsec = 100'000};  // two lone records

// Microseconds of a lone record from one operator to the other, the median.
double on_the_way(const Case& measured, double seconds) {
  int a, b, told[2];
  connect_pair(measured.over, a, b);
  if (::pipe(told) != 0) give_up("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(a);
    std::vector<double> took;
    receive(b, measured, [&](const std::byte* record) {
      std::int64_t sent;
      std::memcpy(&sent, record, sizeof sent);
      took.push_back(static_cast<double>(nanoseconds_now() - sent) / 1e3);
    });
    const double median = percentile(took, 0.5);
    std::_Exit(::write(told[1], &median, sizeof median) == sizeof median ? 0 : 1);
  }
  ::close(b);
  LinkOptions options;
  options.name = "bench";
  const auto schema = schema_of(false);
  const std::shared_ptr<Operator> out = link_out("out", schema, Link::over(a, options, encrypted(measured, a, Tls::Side::Client)));
  std::vector<std::byte> record(schema->record_size());
  Context context;
  std::int64_t result = 0;
  for (const auto start = Clock::now(); result == 0 && seconds_since(start) < seconds;) {
    (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &kBetween, nullptr);
    const std::int64_t now = nanoseconds_now();
    std::memcpy(record.data(), &now, sizeof now);
    result = out->process(record.data(), 1, nullptr, 0, &context);
  }
  if (result == 0) result = out->finish(nullptr, 0, &context);
  double median = 0;
  int status = 0;
  ::waitpid(child, &status, 0);
  if (result != 0 || status != 0 || ::read(told[0], &median, sizeof median) != sizeof median) give_up("lone records: " + context.message);
  ::close(told[0]);
  ::close(told[1]);
  return median;
}

constexpr char kNoHosts[] = "needs root, iproute2 and util-linux";
constexpr std::size_t kPlainBytes = 64 << 10;

// GB/s of plain calls of send and recv.
double through_socket(Over over, double seconds) {
  int a, b;
  connect_pair(over, a, b);
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
           {"unix.64", "Unix socket, 64 B records, 64 KiB runs", Over::Unix, false, true, 64 << 10},
           {"tcp.64", "TCP, 64 B records, 64 KiB runs", Over::Tcp, false, true, 64 << 10},
           {"unix.unchecked", "Unix socket, 64 B records, 64 KiB runs, no checksum", Over::Unix, false, false, 64 << 10},
           {"tcp.unchecked", "TCP, 64 B records, 64 KiB runs, no checksum", Over::Tcp, false, false, 64 << 10},
           {"tls", "TLS 1.3 over TCP, 64 B records, 64 KiB runs", Over::Tcp, false, true, 64 << 10, true},
           {"unix.text", "Unix socket, 1,000 B texts, 64 KiB runs", Over::Unix, true, true, 64 << 10},
           {"tcp.text", "TCP, 1,000 B texts, 64 KiB runs", Over::Tcp, true, true, 64 << 10},
           {"unix.16k", "Unix socket, 64 B records, 16 KiB runs", Over::Unix, false, true, 16 << 10},
           {"unix.1k", "Unix socket, 64 B records, 1 KiB runs", Over::Unix, false, true, 1 << 10},
           {"cable.tls", "TLS 1.3 between two hosts, 64 B records, 64 KiB runs", Over::Cable, false, true, 64 << 10, true},
       }) {
    if (each.over == Over::Cable && !Hosts::here().made()) {
      print({.key = std::string("link.") + each.key, .what = each.what, .unit = "GB/s", .note = kNoHosts});
      continue;
    }
    Row row{.key = std::string("link.") + each.key,
            .what = std::string("link, ") + each.what,
            .unit = "GB/s",
            .limit_what = each.encrypted ? "the same link without TLS" : "plain send and recv",
            .rounds = alternate(
                settings.whole("rounds"), [&] { return through_link(each, seconds); },
                [&] {
                  if (!each.encrypted) return through_socket(each.over, seconds);
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
  Row lone{.key = "link.cable.tls.p50", .what = "a lone record between two hosts by TLS 1.3, median", .unit = "us", .note = kNoHosts};
  if (Hosts::here().made()) {
    const Case plain{"", "", Over::Cable, false, true, 0}, secret{"", "", Over::Cable, false, true, 0, true};
    lone.limit_what = "the same link without TLS";
    lone.note.clear();
    lone.rounds =
        alternate(settings.whole("rounds"), [&] { return on_the_way(secret, seconds); }, [&] { return on_the_way(plain, seconds); });
  }
  print(lone);
}
