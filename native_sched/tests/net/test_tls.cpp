// TLS under links over real sockets: everything arrives, nothing of it can be read on the way, and without the key there is no connection.
#include "rayelastic/net/tls.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "net/link_peers.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

const std::string kKey(32, 'k');

Tls::Step shake(Tls& tls, int fd) {
  while (true) {
    const Tls::Step step = tls.handshake();
    if (step == Tls::Step::Done || step == Tls::Step::Failed) return step;
    pollfd ready{fd, static_cast<short>(step == Tls::Step::WantsRead ? POLLIN : POLLOUT), 0};
    (void)::poll(&ready, 1, 10'000);
  }
}

struct Pair {
  std::shared_ptr<Tls> near, far;
  bool made = false;

  Pair(int a, int b, const std::string& near_key, const std::string& far_key)
      : near(std::make_shared<Tls>(a, Tls::Side::Client, near_key)), far(std::make_shared<Tls>(b, Tls::Side::Server, far_key)) {
    Tls::Step there = Tls::Step::Failed;
    std::thread server([&] { there = shake(*far, b); });
    const Tls::Step here = shake(*near, a);
    if (here == Tls::Step::Failed) (void)::shutdown(a, SHUT_RDWR);
    server.join();
    made = here == Tls::Step::Done && there == Tls::Step::Done;
  }
};

}  // namespace

TEST(records_go_over_an_encrypted_link_whatever_the_keys_do) {
  if (!Tls::missing().empty()) return;
  for (const std::uint64_t update : {std::uint64_t{1} << 40, std::uint64_t{100'000}}) {
    const Sockets sockets;
    const Pair pair(sockets.a, sockets.b, kKey, kKey);
    CHECK(pair.made);
    CHECK(pair.near->in_force() == "TLSv1.3 TLS_AES_128_GCM_SHA256");
    pair.near->update_key_every(update);
    const auto schema = numbers();
    const auto sender = Link::over(sockets.a, options("pe-1"), pair.near);
    const auto receiver = Link::over(sockets.b, options("pe-0"), pair.far);
    const std::shared_ptr<Operator> out = link_out("out", schema, sender);
    const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
    constexpr std::int64_t kRuns = 2000, kRun = 500;
    std::thread producer([&] {
      Context context(8);
      std::vector<std::int64_t> run(kRun);
      for (std::int64_t i = 0; i < kRuns; ++i) {
        for (std::int64_t k = 0; k < kRun; ++k) run[static_cast<std::size_t>(k)] = i * kRun + k;
        if (context.give(out, run.data(), run.size()) != 0) return;
      }
      (void)context.end(out);
    });
    Context context(8);
    std::int64_t expected = 0;
    bool right = true;
    context.on_run = [&](const std::byte* records, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i, ++expected) {
        std::int64_t value;
        std::memcpy(&value, records + i * 8, 8);
        right = right && value == expected;
      }
      return true;
    };
    CHECK_EQ(context.run_source(in), 0);
    producer.join();
    CHECK(right);
    CHECK_EQ(expected, kRuns * kRun);
    CHECK((pair.near->key_updates() > 50) == (update == 100'000));
  }
}

TEST(what_nobody_reads_is_not_piled_up) {
  if (!Tls::missing().empty()) return;
  const Sockets sockets;
  const Pair pair(sockets.a, sockets.b, kKey, kKey);
  CHECK(pair.made);
  std::vector<char> large(64U << 20);
  const iovec part{large.data(), large.size()};
  const ssize_t sent = pair.near->send({&part, 1});
  CHECK(sent > 0 && sent <= (1 << 20));
  CHECK(pair.near->unsent());
  CHECK_EQ(pair.near->send({&part, 1}), -1);
  CHECK_EQ(errno, EAGAIN);
}

TEST(without_the_key_there_is_no_connection) {
  if (!Tls::missing().empty()) return;
  const Sockets sockets;
  const Pair pair(sockets.a, sockets.b, kKey, std::string(32, 'q'));
  CHECK(!pair.made);
  CHECK(!pair.near->error().empty() && !pair.far->error().empty());
  CHECK(pair.near->in_force().empty());
}

TEST(what_goes_over_the_socket_cannot_be_read_and_not_be_changed) {
  if (!Tls::missing().empty()) return;
  const Sockets left, right;  // a peer in the middle, between left.b and right.a
  const std::string marker = "a marker that nobody may see";
  std::string seen;
  bool damage = false;
  std::thread middle([&] {
    char bytes[4096];
    pollfd both[2] = {{left.b, POLLIN, 0}, {right.a, POLLIN, 0}};
    while (::poll(both, 2, -1) > 0) {
      for (int i = 0; i < 2; ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t got = ::recv(both[i].fd, bytes, sizeof(bytes), 0);
        if (got <= 0) return;
        seen.append(bytes, static_cast<std::size_t>(got));
        if (damage) bytes[got - 1] ^= 1;
        (void)!::send(both[1 - i].fd, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
      }
    }
  });
  const Pair pair(left.a, right.b, kKey, kKey);
  CHECK(pair.made);
  char arrived[64] = {};
  const auto pass = [&] {
    const iovec out{const_cast<char*>(marker.data()), marker.size()};
    CHECK_EQ(pair.near->send({&out, 1}), static_cast<ssize_t>(marker.size()));
    const iovec in{arrived, marker.size()};
    while (true) {
      const ssize_t got = pair.far->receive({&in, 1});
      if (got >= 0 || errno != EAGAIN) return got;
      pollfd readable{right.b, POLLIN, 0};
      (void)::poll(&readable, 1, 10'000);
    }
  };
  CHECK_EQ(pass(), static_cast<ssize_t>(marker.size()));
  CHECK(std::string(arrived, marker.size()) == marker);
  damage = true;
  CHECK_EQ(pass(), -1);
  CHECK_EQ(errno, EPROTO);
  CHECK(!pair.far->error().empty());
  (void)::shutdown(left.a, SHUT_RDWR);
  middle.join();
  CHECK(seen.find(marker) == std::string::npos);
}

REL_TEST_MAIN
