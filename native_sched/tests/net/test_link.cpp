// Links over real sockets: order and conservation, back-pressure, marks, ends (D4, R6).
#include <poll.h>

#include <cstring>
#include <random>
#include <thread>

#include "counted_memory.hpp"
#include "net/link_peers.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

TEST(every_record_with_its_text_arrives_once_and_in_order) {
  for (const bool checksum : {true, false}) {
    const Sockets sockets;
    const auto schema = words();
    LinkOptions chosen = options("pe-1");
    chosen.checksum = checksum;
    const auto sender = Link::over(sockets.a, chosen);
    const auto receiver = Link::over(sockets.b, options("pe-0"));
    const std::shared_ptr<Operator> out = link_out("out", schema, sender);
    const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
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
  const std::shared_ptr<Operator> out = link_out("out", schema, sender);
  const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
  Context sending(8), receiving(8);
  std::int64_t last = -1;
  receiving.on_run = [&](const std::byte* records, std::size_t) {
    std::memcpy(&last, records, 8);
    return true;
  };
  for (std::int64_t value = 0; value < 20; ++value) {
    CHECK_EQ(sending.give(out, &value, 1), 0);
    while (last != value) CHECK(in->process(nullptr, 0, receiving.out.data(), 64, &receiving) == 0);
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
  const std::shared_ptr<Operator> out = link_out("out", schema, sender);
  const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
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
  const std::size_t before = heap_in_use.load();
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
    most = std::max(most, heap_in_use.load());
    CHECK(sender->counters().unconsumed_bytes <= chosen.window_bytes);
    std::this_thread::yield();
  }
  producer.join();
  consumer.join();
  CHECK_EQ(given.load(), kRuns);
  CHECK_EQ(receiver->counters().records_received, static_cast<std::uint64_t>(kRuns) * 16);
  CHECK(most < before + 4 * chosen.window_bytes);
}

// 64 KiB of these records are two seconds of its work, the window two minutes; what goes out before anything is known, half a second.
TEST(a_mark_is_not_long_on_its_way_to_a_receiver_that_is_slow_for_each_record) {
  const Sockets sockets;
  const auto schema = numbers();
  LinkOptions chosen = options("pe-1");
  chosen.most_ahead = std::chrono::milliseconds(50);
  const auto sender = Link::over(sockets.a, chosen);
  const auto receiver = Link::over(sockets.b, chosen);
  const std::shared_ptr<Operator> out = link_out("out", schema, sender);
  const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
  constexpr std::int64_t kLearned = 6000;
  std::atomic<std::int64_t> taken{0};
  std::atomic<bool> enough{false};
  struct Hearing : Context {
    using Context::Context;
    void mark(Mark mark) override { came = came || mark.kind == MarkKind::Barrier; }
    std::atomic<bool> came{false};
  } context(8);
  std::thread consumer([&] {
    context.on_run = [&](const std::byte*, std::size_t count) {
      const auto until = std::chrono::steady_clock::now() + count * std::chrono::microseconds(250);
      while (std::chrono::steady_clock::now() < until && !enough.load()) std::this_thread::yield();
      taken.fetch_add(static_cast<std::int64_t>(count));
      return !enough.load();
    };
    (void)context.run_source(in);
  });
  std::thread producer([&] {
    Context giving(8);
    std::vector<std::int64_t> run(16);
    while (!enough.load() && taken.load() < kLearned && giving.give(out, run.data(), run.size()) == 0) {
    }
    CHECK(sender->send(Mark{MarkKind::Barrier, 1}) == Link::Outcome::Ok);
    const auto sent = std::chrono::steady_clock::now();
    CHECK(eventually([&] { return context.came.load(); }));
    CHECK(std::chrono::steady_clock::now() - sent < std::chrono::seconds(1));
    CHECK(taken.load() < kLearned + 4000);
    enough.store(true);
    sender->interrupt();
    receiver->interrupt();
  });
  producer.join();
  consumer.join();
}

TEST(texts_larger_than_the_window_pass) {
  const Sockets sockets;
  const auto schema = words();
  LinkOptions chosen = options("pe-1");
  chosen.window_bytes = 256 << 10;
  chosen.most_text = 9 << 20;
  const auto sender = Link::over(sockets.a, chosen);
  const auto receiver = Link::over(sockets.b, chosen);
  const std::shared_ptr<Operator> out = link_out("out", schema, sender);
  const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
  std::string large(chosen.most_text, 'L');
  for (std::size_t i = 0; i < large.size(); i += 1000) large[i] = static_cast<char>('a' + i / 1000 % 26);
  const std::string too_large(chosen.most_text + 1, 'T');
  std::thread producer([&] {
    Context context(schema->record_size());
    std::vector<std::byte> record(schema->record_size());
    const auto give = [&](const std::string& text) {
      const StringView view(text.data(), static_cast<std::uint32_t>(text.size()));
      std::memcpy(record.data() + 8, static_cast<const void*>(&view), 16);
      return context.give(out, record.data(), 1);
    };
    for (int i = 0; i < 5; ++i) CHECK_EQ(give(large), 0);
    CHECK_THROWS(give(too_large), std::length_error);
    CHECK_EQ(context.end(out), 0);  // the link is as it was
  });
  Context context(schema->record_size());
  std::size_t bytes = 0;
  context.on_run = [&](const std::byte* records, std::size_t) {
    StringView view;
    std::memcpy(static_cast<void*>(&view), records + 8, 16);
    bytes += view.length;
    CHECK(view.view() == large);
    return true;
  };
  CHECK_EQ(context.run_source(in), 0);
  producer.join();
  CHECK_EQ(bytes, 5 * large.size());
}

TEST(marks_stay_between_the_records_where_they_were) {
  const Sockets sockets;
  const auto schema = numbers();
  const auto sender = Link::over(sockets.a, options("pe-1"));
  const auto receiver = Link::over(sockets.b, options("pe-0"));
  const std::shared_ptr<Operator> out = link_out("out", schema, sender);
  const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
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

TEST(interrupt_ends_waiting_calls_without_a_failure) {
  const Sockets sockets;
  const auto schema = numbers();
  const auto sender = Link::over(sockets.a, options("pe-1"));
  const std::shared_ptr<Operator> out = link_out("out", schema, sender);  // nobody grants it anything
  std::atomic<std::int64_t> sent{0};
  std::thread producer([&] {
    Context context(8);
    const std::vector<std::int64_t> run(100'000);
    sent.store(context.give(out, run.data(), run.size()));
  });
  const auto receiver = Link::over(sockets.b, options("pe-0"));
  CHECK(eventually([&] { return sender->counters().credit_waits > 0; }));
  out->interrupt();
  out->interrupt();
  producer.join();
  CHECK_EQ(sent.load(), REL_STOPPED);
  CHECK_EQ(sender->failure(), "");
  const std::shared_ptr<Operator> in = link_in("in", schema, receiver);
  receiver->interrupt();
  Context context(8);
  CHECK_EQ(context.run_source(in), REL_STOPPED);
  CHECK_EQ(receiver->failure(), "");
  CHECK(!context.finished);
}

TEST(a_stopping_engine_ends_the_source) {
  const Sockets sockets;
  const auto schema = words();
  const std::shared_ptr<Operator> in = link_in("in", schema, Link::over(sockets.b, options("pe-0")));
  RawPeer peer(sockets.a);
  peer.hello(*schema);
  peer.send(peer.records_header(*schema, 100), std::vector<std::byte>(2400));
  Context context(schema->record_size());
  std::size_t runs = 0;
  context.on_run = [&](const std::byte*, std::size_t) { return ++runs < 2; };
  CHECK_EQ(context.run_source(in), REL_STOPPED);
  CHECK_EQ(runs, 2U);
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

TEST(operators_may_come_after_heartbeats) {
  for (const bool late_sender : {true, false}) {
    const Sockets sockets;
    LinkOptions chosen = options("pe-1");
    chosen.heartbeat = std::chrono::milliseconds(1);
    const auto sender = Link::over(sockets.a, chosen), receiver = Link::over(sockets.b, chosen);
    const auto& late = late_sender ? sender : receiver;
    while (late->counters().frames_sent == 0) std::this_thread::yield();
    const std::shared_ptr<Operator> out = link_out("out", numbers(), sender), in = link_in("in", numbers(), receiver);
    std::thread producer([&] {
      Context context(numbers()->record_size());
      const std::int64_t value = 7;
      if (context.give(out, &value, 1) == 0) (void)context.end(out);
    });
    Context context(numbers()->record_size());
    std::vector<std::int64_t> values;
    context.on_run = [&](const std::byte* records, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) std::memcpy(&values.emplace_back(), records + i * numbers()->record_size(), 8);
      return true;
    };
    CHECK_EQ(context.run_source(in), 0);
    producer.join();
    CHECK(values == std::vector<std::int64_t>{7});
  }
}

REL_TEST_MAIN
