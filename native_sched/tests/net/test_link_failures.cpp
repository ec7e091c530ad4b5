// Links that are lost, and everything that has to be refused (D4, R6): never an end of stream, never memory for what a peer claims.
#include <cstring>
#include <random>
#include <thread>

#include "counted_memory.hpp"
#include "net/link_peers.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

// What a receiving operator says to whatever `peer` sends it after a good hello.
std::string refusal(FrameFault expected, const std::function<void(RawPeer&, const Schema&)>& misbehave, bool greet = true,
                    LinkOptions chosen = options("pe-0")) {
  const Sockets sockets;
  const auto schema = words();
  const auto link = Link::over(sockets.b, chosen);
  const std::shared_ptr<Operator> in = link_in("in", schema, link);
  RawPeer peer(sockets.a);
  if (greet) peer.hello(*schema);
  misbehave(peer, *schema);
  Context context(schema->record_size());
  CHECK_EQ(context.run_source(in), REL_FAILED(0));
  CHECK(!context.finished);
  const LinkCounters counters = link->counters();
  for (std::size_t i = 0; i < kFrameFaults; ++i)
    CHECK_EQ(counters.refused[i], i == static_cast<std::size_t>(expected) && expected != FrameFault::None ? 1U : 0U);
  CHECK(context.message.find("link 'a->b' from 'pe-0'") != std::string::npos);
  return context.message;
}

}  // namespace

TEST(a_lost_peer_is_never_an_end_of_stream) {
  CHECK(refusal(FrameFault::None, [](RawPeer& peer, const Schema&) { peer.hang_up(); }).find("without a goodbye") != std::string::npos);
  CHECK(refusal(FrameFault::None, [](RawPeer& peer, const Schema&) {
          peer.send({.kind = FrameKind::Mark, .detail = static_cast<std::uint8_t>(MarkKind::Final)});
          peer.hang_up();
        }).find("without a goodbye") != std::string::npos);
  CHECK(refusal(FrameFault::None,
                [](RawPeer& peer, const Schema& schema) {  // in the middle of a frame
                  peer.send(peer.records_header(schema, 100), std::vector<std::byte>(24));
                  peer.hang_up();
                })
            .find("without a goodbye") != std::string::npos);
  (void)refusal(FrameFault::Order, [](RawPeer& peer, const Schema&) { peer.send({.kind = FrameKind::Goodbye}); });  // without Final
}

TEST(a_sender_notices_that_its_receiver_is_gone) {
  const Sockets sockets;
  const auto schema = numbers();
  const auto link = Link::over(sockets.a, options("pe-1"));
  const std::shared_ptr<Operator> out = link_out("out", schema, link);
  ::close(sockets.b);
  Context context(8);
  const std::int64_t value = 1;
  CHECK(eventually([&] { return context.give(out, &value, 1) < 0; }));
  CHECK(context.message.find("link 'a->b' to 'pe-1'") != std::string::npos);
  CHECK_EQ(context.end(out), REL_FAILED(0));
}

TEST(a_silent_peer_is_a_failure_on_both_sides_and_heartbeats_prevent_it) {
  LinkOptions impatient = options("pe-0");
  impatient.heartbeat = std::chrono::milliseconds(20);
  impatient.silence = impatient.first_silence = std::chrono::milliseconds(200);
  CHECK(refusal(FrameFault::None, [](RawPeer&, const Schema&) {}, true, impatient).find("said nothing for 0.") != std::string::npos);
  {
    const Sockets sockets;
    RawPeer peer(sockets.b);
    const auto link = Link::over(sockets.a, impatient);
    const std::shared_ptr<Operator> out = link_out("out", numbers(), link);
    CHECK(eventually([&] { return !link->failure().empty(); }));
    CHECK(link->failure().find("said nothing for 0.") != std::string::npos);
  }
  const Sockets sockets;
  impatient.silence = impatient.first_silence = std::chrono::seconds(20);  // far more than a busy machine makes of 20 ms
  const auto sender = Link::over(sockets.a, impatient);
  const auto receiver = Link::over(sockets.b, impatient);
  const std::shared_ptr<Operator> out = link_out("out", numbers(), sender);
  const std::shared_ptr<Operator> in = link_in("in", numbers(), receiver);
  std::thread consumer([&] {
    Context context(8);
    (void)context.run_source(in);
  });
  CHECK(eventually([&] { return sender->counters().frames_received > 12 && receiver->counters().frames_received > 12; }));
  CHECK_EQ(sender->failure() + receiver->failure(), "");
  receiver->interrupt();
  consumer.join();
}

TEST(bad_frames_are_refused_and_counted_by_reason) {
  const std::vector<std::byte> one(24);
  (void)refusal(FrameFault::Magic, [](RawPeer& peer, const Schema&) { peer.send("GET / HTTP/1.1\r\nHost: nowhere at all\r\n\r\n", 41); });
  (void)refusal(FrameFault::Order, [&](RawPeer& peer, const Schema& schema) { peer.send(peer.records_header(schema, 1), one); }, false);
  (void)refusal(FrameFault::Order, [](RawPeer& peer, const Schema& schema) { peer.hello(schema); });
  (void)refusal(FrameFault::Order, [](RawPeer& peer, const Schema&) { peer.send({.kind = FrameKind::Credit, .value = 1}); });
  (void)refusal(FrameFault::Schema, [](RawPeer& peer, const Schema&) { peer.hello(*numbers()); }, false);
  (void)refusal(FrameFault::Sequence, [&](RawPeer& peer, const Schema& schema) {
    peer.sequence = 9;
    peer.send(peer.records_header(schema, 1), one);
  });
  (void)refusal(FrameFault::Sequence, [](RawPeer& peer, const Schema&) {  // a replayed frame
    peer.send({.kind = FrameKind::Heartbeat});
    peer.sequence = 1;
    peer.send({.kind = FrameKind::Heartbeat});
  });
  (void)refusal(FrameFault::RecordSize, [&](RawPeer& peer, const Schema&) { peer.send(peer.records_header(*numbers(), 1), one); });
  (void)refusal(FrameFault::Checksum, [&](RawPeer& peer, const Schema& schema) {
    FrameHeader header = peer.records_header(schema, 1);
    header.sequence = 1;
    header.checksummed = true;
    header.checksum = checksum_of(header, one, {}) ^ 1;
    const HeaderBytes bytes = encode_header(header);
    peer.send(bytes.data(), bytes.size());
    peer.send(one.data(), one.size());
  });
  const std::string seen = refusal(FrameFault::View, [](RawPeer& peer, const Schema& schema) {
    std::vector<std::byte> records(3 * 24);
    const std::uint32_t length = 20;
    const std::uint64_t offset = 1;
    std::memcpy(records.data() + 48 + 8, &length, 4);
    std::memcpy(records.data() + 48 + 16, &offset, 8);
    peer.send(peer.records_header(schema, 3, 20), records, std::vector<char>(20));
  });
  CHECK(seen.find("record 2") != std::string::npos);
  (void)refusal(FrameFault::Order, [&](RawPeer& peer, const Schema& schema) {
    peer.send({.kind = FrameKind::Mark, .detail = static_cast<std::uint8_t>(MarkKind::Final)});
    peer.send(peer.records_header(schema, 1), one);
  });
}

TEST(text_that_comes_ahead_belongs_to_the_next_records_and_is_all_there) {
  const std::vector<char> piece(100, 'p');
  const auto text = [&](std::int64_t whole) { return FrameHeader{.kind = FrameKind::Text, .heap_bytes = 100, .value = whole}; };
  (void)refusal(FrameFault::Order, [&](RawPeer& peer, const Schema&) {
    peer.send(text(300), {}, piece);
    peer.send({.kind = FrameKind::Mark, .detail = static_cast<std::uint8_t>(MarkKind::Watermark)});
  });
  (void)refusal(FrameFault::Field, [&](RawPeer& peer, const Schema&) {
    peer.send(text(300), {}, piece);
    peer.send(text(400), {}, piece);
  });
  (void)refusal(FrameFault::Field, [&](RawPeer& peer, const Schema&) {
    for (int i = 0; i < 3; ++i) peer.send(text(300), {}, piece);
  });
  (void)refusal(FrameFault::Field, [&](RawPeer& peer, const Schema& schema) {
    peer.send(text(300), {}, piece);
    peer.send(peer.records_header(schema, 1, 100), std::vector<std::byte>(24), piece);
  });
  (void)refusal(FrameFault::Length, [&](RawPeer& peer, const Schema&) { peer.send(text(std::int64_t{1} << 40), {}, piece); });
  (void)refusal(FrameFault::Checksum, [&](RawPeer& peer, const Schema&) {
    FrameHeader damaged = text(300);
    damaged.checksummed = true;
    damaged.sequence = peer.sequence++;
    const HeaderBytes bytes = encode_header(damaged);
    peer.send(bytes.data(), bytes.size());
    peer.send(piece.data(), piece.size());
  });
}

TEST(huge_counts_are_refused_before_memory_is_allocated) {
  constexpr std::size_t kLittle = 64 << 10;  // bytes: less than any of the claims, more than a link holds that waits for records
  const std::size_t before = heap_in_use.load();
  largest_request.store(0);
  for (int round = 0; round < 50; ++round) {
    (void)refusal(FrameFault::Length,
                  [](RawPeer& peer, const Schema& schema) { peer.send(peer.records_header(schema, UINT32_MAX, UINT32_MAX)); });
    (void)refusal(FrameFault::Length, [](RawPeer& peer, const Schema& schema) { peer.send(peer.records_header(schema, 1, 8 << 20)); });
  }
  CHECK(largest_request.load() < kLittle);
  CHECK(heap_in_use.load() < before + kLittle);
}

TEST(what_a_receiver_may_not_say_is_refused_by_the_sender) {
  const auto said = [](FrameFault expected, const std::function<void(RawPeer&)>& misbehave) {
    const Sockets sockets;
    RawPeer peer(sockets.b);
    const auto link = Link::over(sockets.a, options("pe-1"));
    const std::shared_ptr<Operator> out = link_out("out", numbers(), link);
    misbehave(peer);
    CHECK(eventually([&] { return !link->failure().empty(); }));
    CHECK_EQ(link->counters().refused[static_cast<std::size_t>(expected)], 1U);
    Context context(8);
    const std::int64_t value = 0;
    CHECK_EQ(context.give(out, &value, 1), REL_FAILED(0));
  };
  said(FrameFault::Magic, [](RawPeer& peer) { peer.send(std::string(64, 'x').data(), 64); });
  said(FrameFault::Schema, [](RawPeer& peer) { peer.hello(*words()); });
  said(FrameFault::Order, [](RawPeer& peer) { peer.send({.kind = FrameKind::Credit, .value = 100}); });
  said(FrameFault::Order, [](RawPeer& peer) { peer.send({.kind = FrameKind::Goodbye}); });
  said(FrameFault::Order, [](RawPeer& peer) { peer.send({.kind = FrameKind::Mark}); });
  said(FrameFault::RecordSize, [](RawPeer& peer) { peer.send(peer.records_header(*numbers(), 1), std::vector<std::byte>(8)); });
  said(FrameFault::Credit, [](RawPeer& peer) {
    peer.hello(*numbers());
    peer.send({.kind = FrameKind::Credit, .value = 1 << 20});
    peer.send({.kind = FrameKind::Credit, .value = 1});
  });
}

TEST(random_bytes_and_forced_disconnects_end_every_time_in_a_failure) {
  std::mt19937_64 random(6);
  const auto schema = words();
  for (int round = 0; round < 300; ++round) {
    const Sockets sockets;
    const auto link = Link::over(sockets.b, options("pe-0"));
    const std::shared_ptr<Operator> in = link_in("in", schema, link);
    RawPeer peer(sockets.a);
    peer.hello(*schema);
    // A good stream, cut or changed at a random byte.
    std::vector<std::byte> stream;
    for (std::uint64_t sequence = 1; sequence < 6; ++sequence) {
      FrameHeader header = peer.records_header(*schema, 4);
      header.sequence = sequence;
      const std::vector<std::byte> records(4 * 24);
      header.checksummed = true;
      header.checksum = checksum_of(header, records, {});
      const HeaderBytes bytes = encode_header(header);
      stream.insert(stream.end(), bytes.begin(), bytes.end());
      stream.insert(stream.end(), records.begin(), records.end());
    }
    const std::size_t at = random() % stream.size();
    if (round % 2 == 0)
      stream.resize(at);
    else
      stream[at] ^= static_cast<std::byte>(1U << (random() % 8));
    peer.send(stream.data(), stream.size());
    peer.hang_up();
    Context context(schema->record_size());
    std::size_t records = 0;
    context.on_run = [&](const std::byte*, std::size_t n) {
      records += n;
      return true;
    };
    CHECK_EQ(context.run_source(in), REL_FAILED(0));
    CHECK(!context.finished);
    CHECK_EQ(records, at / 136 * 4);  // whole frames before the cut, and never a part of one
  }
}

REL_TEST_MAIN
