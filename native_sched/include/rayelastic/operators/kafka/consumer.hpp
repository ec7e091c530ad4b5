// A consumer of one Kafka topic, and the source operator that emits its messages as records. librdkafka fetches in threads of its own; the
// source's thread takes batches of messages and decodes them, without the GIL.
//
// Owners: the source operator consumes, in one thread; any other thread may assign, fail, interrupt, and ask for events and positions. One
// mutex, locked a few times per batch.
// Positions: `position(n)` is where each partition continues after the first n records of this run. It is exact, because the consumer
// remembers of which messages the records were made until a later position is asked for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/mutex.hpp"
#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/schema.hpp"

namespace rayelastic {

enum class KafkaFormat : std::uint8_t { Bytes, Text, Json };

struct KafkaHeader {
  std::string name;
  std::int32_t field = -1;
};

// Which fields of the schema have what; -1: none. The others are of the value.
struct KafkaFields {
  std::int32_t key = -1;
  std::int32_t timestamp = -1;
  std::int32_t partition = -1;
  std::int32_t offset = -1;
  std::vector<KafkaHeader> headers = {};
};

struct KafkaTopic {
  std::string library;                                        // the file of librdkafka
  std::vector<std::pair<std::string, std::string>> settings;  // of the consumer
  std::string topic;
  KafkaFormat format = KafkaFormat::Bytes;
  KafkaFields fields = {};
  bool skips = false;  // messages that don't decode are counted and dropped; otherwise the first one is an event, and the source waits
  // Set: the source emits dead letters instead, of the messages that aren't of this schema. See kafka/letters.hpp.
  std::shared_ptr<const Schema> expected = nullptr;
  std::string reader = {};  // the name of the source whose dead letters these are
};

struct KafkaRange {
  std::int32_t partition = 0;
  std::int64_t start = 0;
  std::int64_t end = -1;  // the first offset that isn't read; -1: no end
};

// How far a consumer is behind.
struct KafkaLag {
  std::int64_t messages = 0;  // unread
  // The timestamp of the last message read, ms since 1970. Of partitions with more messages, the oldest.
  std::optional<std::int64_t> read_at = std::nullopt;
};

// What somebody has to decide on, or a message that was dropped.
struct KafkaEvent {
  std::string name;  // 'bad-record', or librdkafka's name of an error
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  std::string text;
};

namespace kafka {
struct Client;
struct Library;
struct Message;
struct Queue;
}  // namespace kafka

class KafkaConsumer {
 public:
  // Throws std::runtime_error: the library can't be loaded, or a setting is invalid.
  explicit KafkaConsumer(KafkaTopic topic);
  ~KafkaConsumer();
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;

  // --- any thread
  // Reads these partitions, too. Throws std::runtime_error.
  void assign(const std::vector<KafkaRange>& ranges);
  void fail(std::string message);  // the source fails with this message
  void interrupt();                // stop: nobody waits here any more
  // The next event, waiting for it; none after `wait`, or at once when interrupted or at the end.
  [[nodiscard]] std::optional<KafkaEvent> next_event(std::chrono::milliseconds wait);
  [[nodiscard]] bool is_over() const;  // interrupted, failed, or all was read
  [[nodiscard]] std::vector<std::pair<std::int32_t, std::int64_t>> position(std::int64_t emitted);
  void set_ends(const std::vector<std::pair<std::int32_t, std::int64_t>>& ends);  // where partitions end now, as the brokers report it
  [[nodiscard]] KafkaLag lag() const;
  [[nodiscard]] std::int64_t dropped() const;  // messages that didn't decode
  [[nodiscard]] std::vector<KafkaEvent> first_dropped() const;

  // --- for the source
  [[nodiscard]] const KafkaTopic& topic() const noexcept { return topic_; }
  [[nodiscard]] const kafka::Library& library() const noexcept { return library_; }
  // Messages, waiting for the first; 0: interrupted, failed, or all was read.
  [[nodiscard]] std::size_t consume(kafka::Message** messages, std::size_t room);
  // Reports an error among the messages; returns whether it says that its partition was read to the end.
  [[nodiscard]] bool on_error(const kafka::Message& message);
  // The first offset of a partition that isn't read.
  [[nodiscard]] std::int64_t limit(std::int32_t partition) const;
  // So many records were made of one partition's messages from `first` on, one of each offset; the partition continues at `next`. `read_at` is
  // the timestamp of the last one, -1: unknown. Returns whether it was read to the end.
  [[nodiscard]] bool read(std::int32_t partition, std::int64_t first, std::int64_t records, std::int64_t next, std::int64_t read_at);
  void drop(KafkaEvent bad);
  void report(KafkaEvent event);
  // Waits until somebody has decided on what was reported: the source is to end or to fail.
  void await_decision();
  [[nodiscard]] std::optional<std::string> failure() const;
  // Partitions that were assigned since the last call.
  [[nodiscard]] std::vector<std::int32_t> new_partitions();

 private:
  struct Partition {
    bool assigned = false;
    bool done = false;
    std::int64_t held = 0;  // where it continues after the records of the last position
    std::int64_t end = -1;
    std::int64_t next = 0;       // the first offset that isn't read
    std::int64_t topic_end = 0;  // as the brokers last reported it
    std::int64_t read_at = -1;   // the timestamp of the last message read; -1: unknown
  };
  struct Segment {
    std::int32_t partition;
    std::int64_t first;    // the offset of its first record
    std::int64_t records;  // one of each offset
    std::int64_t next;     // where the partition continues after them
  };

  [[nodiscard]] bool is_over_locked() const REL_HELD(mutex_);
  bool finish_partition(std::int32_t number) REL_HELD(mutex_);

  const KafkaTopic topic_;
  const kafka::Library& library_;
  kafka::Client* client_ = nullptr;
  kafka::Queue* queue_ = nullptr;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::vector<Partition> partitions_ REL_GUARDED_BY(mutex_);  // by number
  std::vector<std::int32_t> new_ REL_GUARDED_BY(mutex_);
  std::size_t open_ REL_GUARDED_BY(mutex_) = 0;  // partitions that aren't done
  bool begun_ REL_GUARDED_BY(mutex_) = false;
  bool interrupted_ REL_GUARDED_BY(mutex_) = false;
  std::optional<std::string> failure_ REL_GUARDED_BY(mutex_);
  std::deque<KafkaEvent> events_ REL_GUARDED_BY(mutex_);
  std::deque<Segment> segments_ REL_GUARDED_BY(mutex_);
  std::int64_t counted_ REL_GUARDED_BY(mutex_) = 0;  // records before the first segment
  std::int64_t dropped_ REL_GUARDED_BY(mutex_) = 0;
  std::vector<KafkaEvent> first_dropped_ REL_GUARDED_BY(mutex_);
};

// Throws std::invalid_argument: the schema doesn't fit the topic's format.
[[nodiscard]] std::shared_ptr<Operator> make_kafka_source(std::string name, std::shared_ptr<const Schema> output,
                                                          std::shared_ptr<KafkaConsumer> consumer);

}  // namespace rayelastic
