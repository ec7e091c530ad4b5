// The source operator of a Kafka topic. Its thread takes messages from librdkafka's queue, and copies what the records need of them: a
// message that stayed alive would keep all that was fetched with it.
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "operators/kafka/decoder.hpp"
#include "operators/kafka/letters.hpp"
#include "operators/kafka/librdkafka.hpp"
#include "rayelastic/operators/kafka/consumer.hpp"
#include "rayelastic/operators/time/splits.hpp"
#include "rayelastic/record/chunk.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kBatch = 2048;  // messages

class KafkaSource final : public Operator {
 public:
  KafkaSource(std::string name, std::shared_ptr<const Schema> output, std::shared_ptr<KafkaConsumer> consumer)
      : Operator(std::move(name), {}, {output}, REL_SOURCE), consumer_(std::move(consumer)), stride_(output->record_size()) {
    if (consumer_->topic().expected != nullptr) {
      letters_.emplace(consumer_->topic(), output, consumer_->library());
    } else {
      decoder_.emplace(consumer_->topic(), output, consumer_->library());
    }
  }
  ~KafkaSource() override {
    while (at_ < count_) release();
  }

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    announce(context);
    if (at_ == count_) {
      if (!fetch()) return ended(context);
      announce(context);  // partitions may have been assigned while it waited
    }
    if (chunk_) context->attach(chunk_.get());
    Reading reading{.partition = partition_};
    while (reading.emitted < capacity && at_ < count_) {
      const kafka::Message& message = *messages_[at_];
      if (message.err != kafka::kNoError) {
        if (consumer_->on_error(message)) ended_.push_back(message.partition);
        release();
        continue;
      }
      if (message.partition != partition_) {
        if (reading.emitted > 0) break;  // a mark comes between
        finish(reading);
        begin(message.partition, context);
        reading = {.partition = partition_};
      }
      if (message.offset >= limit_) {
        release();
        continue;
      }
      const std::string problem = decoder_.has_value() ? decoder_->decode(message, out, texts_) : std::string();
      const bool emits = letters_.has_value() ? letters_->write(message, out, context) : problem.empty();
      if (!problem.empty()) {
        if (!consumer_->topic().skips && reading.emitted > 0) break;
        KafkaEvent bad{.name = "bad-record", .partition = message.partition, .offset = message.offset, .text = problem};
        if (!consumer_->topic().skips) {
          consumer_->report(std::move(bad));
          consumer_->await_decision();
          return ended(context);
        }
        consumer_->drop(std::move(bad));
      }
      advance(reading, message.offset, emits);
      if (at_ + 1 == count_ || reading.emitted + 1 == capacity || messages_[at_ + 1]->partition != partition_) {
        int type = kafka::kNoTimestamp;
        reading.read_at = consumer_->library().message_timestamp(&message, &type);
      }
      if (emits) {
        out += stride_;
        ++reading.emitted;
      }
      release();
    }
    finish(reading);
    return reading.emitted;
  }
  void interrupt() override { consumer_->interrupt(); }

 private:
  // Messages of one partition that were read in one call, without gaps.
  struct Reading {
    std::int32_t partition = -1;
    std::int64_t first = -1;
    std::int64_t records = 0;
    std::int64_t next = -1;     // -1: nothing was read
    std::int64_t emitted = 0;   // in the call, also before gaps
    std::int64_t read_at = -1;  // the timestamp of the last message, if it is known
  };

  void advance(Reading& reading, std::int64_t offset, bool has_record) {
    if (reading.records > 0 && offset != reading.first + reading.records) finish(reading);
    if (has_record) {
      if (reading.records == 0) reading.first = offset;
      ++reading.records;
    }
    reading.next = offset + 1;
  }

  void finish(Reading& reading) {
    if (reading.next >= 0 && consumer_->read(reading.partition, reading.first, reading.records, reading.next, reading.read_at)) {
      ended_.push_back(reading.partition);
    }
    reading.records = 0;
    reading.next = -1;
  }

  void begin(std::int32_t partition, rel_context* context) {
    partition_ = partition;
    limit_ = consumer_->limit(partition);
    if (splits_ > 1) context->mark(split_mark(partition, SplitChange::Now));
  }

  // Each partition is a split. With one there is nothing to tell.
  void announce(rel_context* context) {
    for (const std::int32_t ended : std::exchange(ended_, {})) {
      if (splits_ > 1) context->mark(split_mark(ended, SplitChange::End));
    }
    std::vector<std::int32_t> fresh = consumer_->new_partitions();
    if (fresh.empty()) return;
    const bool first_of_many = splits_ <= 1 && splits_ + fresh.size() > 1;
    splits_ += fresh.size();
    if (!first_of_many && splits_ <= 1) return;
    for (const std::int32_t number : fresh) context->mark(split_mark(number, SplitChange::Open));
    partition_ = -1;  // what follows is announced anew
  }

  bool fetch() {
    at_ = 0;
    count_ = consumer_->consume(messages_.data(), messages_.size());
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < count_; ++at)
      bytes += decoder_.has_value() && messages_[at]->err == kafka::kNoError ? decoder_->most_bytes(*messages_[at]) : 0;
    chunk_ = bytes > 0 ? Chunk::allocate(bytes) : ChunkRef();
    texts_ = bytes > 0 ? chunk_->data() : nullptr;
    return count_ > 0;
  }

  std::int64_t ended(rel_context* context) {
    if (const std::optional<std::string> failure = consumer_->failure()) {
      context->fail(*failure);
      return REL_FAILED(0);
    }
    context->finish();  // an interrupted source ends, too: the engine drains or drops what it has read
    return 0;
  }

  void release() { consumer_->library().message_destroy(messages_[at_++]); }

  const std::shared_ptr<KafkaConsumer> consumer_;
  std::optional<kafka::Decoder> decoder_;  // one of the two
  std::optional<kafka::Letters> letters_;
  const std::size_t stride_;
  std::array<kafka::Message*, kBatch> messages_{};
  std::size_t at_ = 0;  // the next of the messages
  std::size_t count_ = 0;
  ChunkRef chunk_;  // the texts of their records
  char* texts_ = nullptr;
  std::size_t splits_ = 0;
  std::int32_t partition_ = -1;  // of the message before
  std::int64_t limit_ = 0;       // the first offset of it that isn't read
  std::vector<std::int32_t> ended_;
};

}  // namespace

std::shared_ptr<Operator> make_kafka_source(std::string name, std::shared_ptr<const Schema> output,
                                            std::shared_ptr<KafkaConsumer> consumer) {
  try {
    return std::make_shared<KafkaSource>(name, std::move(output), std::move(consumer));
  } catch (const std::invalid_argument& problem) {
    throw std::invalid_argument("operator '" + name + "': " + problem.what());
  }
}

}  // namespace rayelastic
