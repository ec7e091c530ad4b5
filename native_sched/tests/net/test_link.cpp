// Links over real sockets: order and conservation, back-pressure, marks, ends, and everything that has to be refused (D4, R6).
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/net/link.hpp"

using namespace rayelastic;
using check::eventually;

namespace {

std::shared_ptr<const Schema> numbers() {
  return std::make_shared<const Schema>(std::vector<Field>{{.name = "value", .type = Type::Int64, .nullable = false, .format = "l"}});
}

std::shared_ptr<const Schema> words() {
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
LinkOptions options(const char* peer) {
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

  std::int64_t run_source(const OperatorSpec& spec) {
    std::int64_t result = 0;
    while (!finished && result >= 0)
      result = spec.process(nullptr, 0, out.data(), static_cast<std::int64_t>(capacity), spec.state.get(), this);
    return result;
  }
  std::int64_t give(const OperatorSpec& spec, const void* records, std::size_t n) {
    return spec.process(records, static_cast<std::int64_t>(n), nullptr, 0, spec.state.get(), this);
  }
  std::int64_t end(const OperatorSpec& spec) { return spec.process(nullptr, 0, nullptr, 0, spec.state.get(), this); }

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

// What a receiving operator says to whatever `peer` sends it after a good hello.
std::string refusal(FrameFault expected, const std::function<void(RawPeer&, const Schema&)>& misbehave, bool greet = true,
                    LinkOptions chosen = options("pe-0")) {
  const Sockets sockets;
  const auto schema = words();
  const auto link = Link::over(sockets.b, chosen);
  const OperatorSpec in = link_in("in", schema, link);
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

std::size_t resident_kib() {
  std::size_t pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  CHECK(file != nullptr && std::fscanf(file, "%zu %zu", &pages, &resident) == 2);
  std::fclose(file);
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

}  // namespace

TEST(every_record_with_its_text_arrives_once_and_in_order) {
  for (const bool checksum : {true, false}) {
    const Sockets sockets;
    const auto schema = words();
    LinkOptions chosen = options("pe-1");
    chosen.checksum = checksum;
    const auto sender = Link::over(sockets.a, chosen);
    const auto receiver = Link::over(sockets.b, options("pe-0"));
    const OperatorSpec out = link_out("out", schema, sender);
    const OperatorSpec in = link_in("in", schema, receiver);
    constexpr std::int64_t kCount = 100'000;

    std::thread producer([&] {
      std::mt19937 random(4);
      Context context(schema->record_size());
      std::int64_t next = 0;
      while (next < kCount) {
        const auto n = std::min<std::int64_t>(1 + random() % 300, kCount - next);
        std::vector<std::byte> run(static_cast<std::size_t>(n) * schema->record_size());
        std::vector<std::string> texts(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < texts.size(); ++i) {
          const std::int64_t value = next + static_cast<std::int64_t>(i);
          texts[i] = std::to_string(value) + std::string(static_cast<std::size_t>(value % 40), '.');
          const StringView view(texts[i].data(), static_cast<std::uint32_t>(texts[i].size()));
          std::memcpy(run.data() + i * schema->record_size(), &value, 8);
          std::memcpy(run.data() + i * schema->record_size() + 8, static_cast<const void*>(&view), 16);
        }
        if (context.give(out, run.data(), static_cast<std::size_t>(n)) != 0) return;
        next += n;
      }
      (void)context.end(out);
    });

    Context context(schema->record_size());
    std::int64_t expected = 0;
    bool right = true;
    context.on_run = [&](const std::byte* records, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i, ++expected) {
        std::int64_t value;
        StringView view;
        std::memcpy(&value, records + i * schema->record_size(), 8);
        std::memcpy(static_cast<void*>(&view), records + i * schema->record_size() + 8, 16);
        right = right && value == expected && view.view() == std::to_string(value) + std::string(static_cast<std::size_t>(value % 40), '.');
      }
      return true;
    };
    CHECK_EQ(context.run_source(in), 0);
    producer.join();
    CHECK(context.finished);
    CHECK(right);
    CHECK_EQ(expected, kCount);
    CHECK_EQ(sender->failure(), "");
    CHECK_EQ(receiver->failure(), "");
    const LinkCounters sent = sender->counters(), received = receiver->counters();
    CHECK_EQ(sent.records_sent, static_cast<std::uint64_t>(kCount));
    CHECK_EQ(received.records_received, static_cast<std::uint64_t>(kCount));
    CHECK_EQ(sent.bytes_sent, received.bytes_received);
    CHECK_EQ(sent.unconsumed_bytes, 0U);
  }
}

TEST(a_run_goes_out_without_anything_after_it) {
  const Sockets sockets;
  const auto schema = numbers();
  const auto sender = Link::over(sockets.a, options("pe-1"));
  const auto receiver = Link::over(sockets.b, options("pe-0"));
  const OperatorSpec out = link_out("out", schema, sender);
  const OperatorSpec in = link_in("in", schema, receiver);
  Context sending(8), receiving(8);
  std::int64_t last = -1;
  receiving.on_run = [&](const std::byte* records, std::size_t) {
    std::memcpy(&last, records, 8);
    return true;
  };
  for (std::int64_t value = 0; value < 20; ++value) {
    CHECK_EQ(sending.give(out, &value, 1), 0);
    while (last != value) CHECK(in.process(nullptr, 0, receiving.out.data(), 64, in.state.get(), &receiving) == 0);
  }
}

TEST(a_slow_receiver_makes_the_sender_wait_and_memory_stays_bounded) {
  const Sockets sockets;
  const auto schema = words();
  LinkOptions chosen = options("pe-1");
  chosen.frame_bytes = 16 << 10;
  chosen.window_bytes = 64 << 10;  // less than the socket holds, so that it is the credit that ends first
  const auto sender = Link::over(sockets.a, chosen);
  const auto receiver = Link::over(sockets.b, chosen);
  const OperatorSpec out = link_out("out", schema, sender);
  const OperatorSpec in = link_in("in", schema, receiver);
  constexpr int kRuns = 4000;  // of 16 KB: 64 MB, where at most the window may lie between the two
  const std::string text(1000, 't');

  std::atomic<bool> go{false}, done{false};
  std::thread consumer([&] {
    Context context(schema->record_size());
    context.on_run = [&](const std::byte*, std::size_t) { return eventually([&] { return go.load(); }); };
    CHECK(context.run_source(in) == 0);
  });
  std::atomic<int> given{0};
  std::size_t most = 0;
  const std::size_t before = resident_kib();
  std::thread producer([&] {
    Context context(schema->record_size());
    std::vector<std::byte> run(16 * schema->record_size());
    for (std::size_t i = 0; i < 16; ++i) {
      const StringView view(text.data() + i % 2, 999);  // never twice the same in a row
      std::memcpy(run.data() + i * schema->record_size() + 8, static_cast<const void*>(&view), 16);
    }
    for (int i = 0; i < kRuns && context.give(out, run.data(), 16) == 0; ++i) given.store(i + 1);
    (void)context.end(out);
    done.store(true);
  });
  CHECK(eventually([&] { return sender->counters().credit_waits > 0; }));
  // It stands still with the window and what the two frames of the sender hold.
  CHECK(given.load() < static_cast<int>((chosen.window_bytes + 3 * chosen.frame_bytes) / 16'000 + 2));
  CHECK(receiver->counters().unconsumed_bytes <= chosen.window_bytes);
  go.store(true);
  while (!done.load()) {
    most = std::max(most, resident_kib());
    CHECK(sender->counters().unconsumed_bytes <= chosen.window_bytes);
    std::this_thread::yield();
  }
  producer.join();
  consumer.join();
  CHECK_EQ(given.load(), kRuns);
  CHECK_EQ(receiver->counters().records_received, static_cast<std::uint64_t>(kRuns) * 16);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(most < before + 16 * 1024);
#else
  (void)before;
#endif
}

TEST(frames_larger_than_the_window_pass) {
  const Sockets sockets;
  const auto schema = words();
  LinkOptions chosen = options("pe-1");
  chosen.window_bytes = 256 << 10;
  const auto sender = Link::over(sockets.a, chosen);
  const auto receiver = Link::over(sockets.b, chosen);
  const OperatorSpec out = link_out("out", schema, sender);
  const OperatorSpec in = link_in("in", schema, receiver);
  const std::string large(3 << 20, 'L'), too_large(9 << 20, 'T');
  std::thread producer([&] {
    Context context(schema->record_size());
    std::vector<std::byte> record(schema->record_size());
    const auto give = [&](const std::string& text) {
      const StringView view(text.data(), static_cast<std::uint32_t>(text.size()));
      std::memcpy(record.data() + 8, static_cast<const void*>(&view), 16);
      return context.give(out, record.data(), 1);
    };
    for (int i = 0; i < 5; ++i) CHECK_EQ(give(large), 0);
    CHECK(eventually([&] { return receiver->counters().records_received == 5; }));  // a failure takes what is under way with it
    CHECK_EQ(give(too_large), REL_FAILED(0));
    CHECK(context.message.find("max_frame_bytes") != std::string::npos);
  });
  Context context(schema->record_size());
  std::size_t bytes = 0;
  context.on_run = [&](const std::byte* records, std::size_t) {
    StringView view;
    std::memcpy(static_cast<void*>(&view), records + 8, 16);
    bytes += view.length;
    return true;
  };
  (void)context.run_source(in);
  producer.join();
  CHECK_EQ(bytes, 5 * large.size());
}

TEST(marks_stay_between_the_records_where_they_were) {
  const Sockets sockets;
  const auto schema = numbers();
  const auto sender = Link::over(sockets.a, options("pe-1"));
  const auto receiver = Link::over(sockets.b, options("pe-0"));
  const OperatorSpec out = link_out("out", schema, sender);
  const OperatorSpec in = link_in("in", schema, receiver);
  std::thread producer([&] {
    Context context(8);
    for (std::int64_t value = 0; value < 1000; ++value) {
      (void)context.give(out, &value, 1);
      if (value % 10 == 9) (void)sender->send(Mark{MarkKind::Watermark, value});
    }
    (void)context.end(out);
  });
  Context context(8);
  std::int64_t next = 0;
  bool right = true;
  context.on_run = [&](const std::byte* records, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      std::int64_t value;
      std::memcpy(&value, records + i * 8, 8);
      right = right && value == next++ && static_cast<std::int64_t>(context.marks.size()) == value / 10;
    }
    return true;
  };
  CHECK_EQ(context.run_source(in), 0);
  producer.join();
  CHECK(right);
  CHECK_EQ(context.marks.size(), 100U);
  CHECK(context.marks.back().kind == MarkKind::Watermark);
  CHECK_EQ(context.marks.back().value, 999);
}

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
  const OperatorSpec out = link_out("out", schema, link);
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
    const OperatorSpec out = link_out("out", numbers(), link);
    CHECK(eventually([&] { return !link->failure().empty(); }));
    CHECK(link->failure().find("said nothing for 0.") != std::string::npos);
  }
  const Sockets sockets;
  impatient.silence = impatient.first_silence = std::chrono::seconds(20);  // far more than a busy machine makes of 20 ms
  const auto sender = Link::over(sockets.a, impatient);
  const auto receiver = Link::over(sockets.b, impatient);
  const OperatorSpec out = link_out("out", numbers(), sender);
  const OperatorSpec in = link_in("in", numbers(), receiver);
  std::thread consumer([&] {
    Context context(8);
    (void)context.run_source(in);
  });
  CHECK(eventually([&] { return sender->counters().frames_received > 12 && receiver->counters().frames_received > 12; }));
  CHECK_EQ(sender->failure() + receiver->failure(), "");
  receiver->interrupt();
  consumer.join();
}

TEST(interrupt_ends_waiting_calls_without_a_failure) {
  const Sockets sockets;
  const auto schema = numbers();
  const auto sender = Link::over(sockets.a, options("pe-1"));
  const OperatorSpec out = link_out("out", schema, sender);  // nobody grants it anything
  std::atomic<std::int64_t> sent{0}, received{0};
  std::thread producer([&] {
    Context context(8);
    const std::vector<std::int64_t> run(100'000);
    sent.store(context.give(out, run.data(), run.size()));
  });
  const auto receiver = Link::over(sockets.b, options("pe-0"));
  CHECK(eventually([&] { return sender->counters().credit_waits > 0; }));
  out.interrupt(out.state.get());
  out.interrupt(out.state.get());
  producer.join();
  CHECK_EQ(sent.load(), REL_STOPPED);
  CHECK_EQ(sender->failure(), "");
  const OperatorSpec in = link_in("in", schema, receiver);
  receiver->interrupt();
  Context context(8);
  CHECK_EQ(context.run_source(in), REL_STOPPED);
  CHECK_EQ(receiver->failure(), "");
  CHECK(!context.finished);
}

TEST(a_stopping_engine_ends_the_source) {
  const Sockets sockets;
  const auto schema = words();
  const OperatorSpec in = link_in("in", schema, Link::over(sockets.b, options("pe-0")));
  RawPeer peer(sockets.a);
  peer.hello(*schema);
  peer.send(peer.records_header(*schema, 100), std::vector<std::byte>(2400));
  Context context(schema->record_size());
  std::size_t runs = 0;
  context.on_run = [&](const std::byte*, std::size_t) { return ++runs < 2; };
  CHECK_EQ(context.run_source(in), REL_STOPPED);
  CHECK_EQ(runs, 2U);
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

TEST(huge_counts_are_refused_before_memory_is_allocated) {
  const std::size_t before = resident_kib();
  for (int round = 0; round < 50; ++round) {
    (void)refusal(FrameFault::Length,
                  [](RawPeer& peer, const Schema& schema) { peer.send(peer.records_header(schema, UINT32_MAX, UINT32_MAX)); });
    (void)refusal(FrameFault::Length, [](RawPeer& peer, const Schema& schema) { peer.send(peer.records_header(schema, 1, 8 << 20)); });
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(resident_kib() < before + 4096);
#else
  (void)before;
#endif
}

TEST(what_a_receiver_may_not_say_is_refused_by_the_sender) {
  const auto said = [](FrameFault expected, const std::function<void(RawPeer&)>& misbehave) {
    const Sockets sockets;
    RawPeer peer(sockets.b);
    const auto link = Link::over(sockets.a, options("pe-1"));
    const OperatorSpec out = link_out("out", numbers(), link);
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
    const OperatorSpec in = link_in("in", schema, link);
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

TEST(options_of_no_sense_and_a_second_operator_are_errors) {
  const auto made = [](const std::function<void(LinkOptions&)>& change) {
    const Sockets sockets;
    ::close(sockets.b);
    LinkOptions chosen = options("pe-0");
    change(chosen);
    return Link::over(sockets.a, chosen);
  };
  CHECK_THROWS(made([](LinkOptions& o) { o.frame_bytes = 10; }), std::invalid_argument);
  CHECK_THROWS(made([](LinkOptions& o) { o.max_frame_bytes = 2048; }), std::invalid_argument);
  CHECK_THROWS(made([](LinkOptions& o) { o.window_bytes = o.frame_bytes; }), std::invalid_argument);
  CHECK_THROWS(made([](LinkOptions& o) { o.silence = o.heartbeat; }), std::invalid_argument);
  const auto link = made([](LinkOptions&) {});
  (void)link_in("in", numbers(), link);
  CHECK_THROWS(link_out("out", numbers(), link), std::logic_error);
}

REL_TEST_MAIN
