#include "rayelastic/operators/kafka/consumer.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "operators/kafka/librdkafka.hpp"

namespace rayelastic {

namespace {

constexpr int kLook = 200;                  // ms between looks at whether the consumer was interrupted: a yield may come before the wait
constexpr std::size_t kMostEvents = 100;    // that wait to be asked for
constexpr std::size_t kFirstDropped = 10;   // that are kept
constexpr std::size_t kProblemBytes = 512;  // of librdkafka's explanations

void on_client_error(kafka::Client*, int error, const char* reason, void* opaque);

}  // namespace

KafkaConsumer::KafkaConsumer(KafkaTopic topic) : topic_(std::move(topic)), library_(kafka::library_at(topic_.library)) {
  kafka::Conf* const conf = library_.conf_new();
  char problem[kProblemBytes] = "";
  for (const auto& [name, value] : topic_.settings) {
    if (library_.conf_set(conf, name.c_str(), value.c_str(), problem, sizeof problem) == kafka::kConfOk) continue;
    library_.conf_destroy(conf);
    throw std::runtime_error(problem);
  }
  library_.conf_set_opaque(conf, this);
  library_.conf_set_error_cb(conf, on_client_error);
  client_ = library_.create(kafka::kConsumer, conf, problem, sizeof problem);
  if (client_ == nullptr) {
    library_.conf_destroy(conf);
    throw std::runtime_error(problem);
  }
  (void)library_.poll_set_consumer(client_);
  queue_ = library_.queue_get_consumer(client_);
}

KafkaConsumer::~KafkaConsumer() {
  library_.queue_destroy(queue_);
  library_.destroy_flags(client_, kafka::kWithoutClose);
}

namespace {

void on_client_error(kafka::Client*, int error, const char* reason, void* opaque) {
  auto* const consumer = static_cast<KafkaConsumer*>(opaque);
  consumer->report({.name = consumer->library().err2name(error), .text = reason != nullptr ? reason : ""});
}

}  // namespace

void KafkaConsumer::assign(const std::vector<KafkaRange>& ranges) {
  kafka::Partitions* const list = library_.list_new(static_cast<int>(ranges.size()));
  {
    const Lock lock(mutex_);
    for (const KafkaRange& range : ranges) {
      const auto number = static_cast<std::size_t>(range.partition);
      if (number >= partitions_.size()) partitions_.resize(number + 1);
      if (partitions_[number].assigned) continue;
      const bool done = range.end >= 0 && range.start >= range.end;
      partitions_[number] = {.assigned = true, .done = done, .held = range.start, .end = range.end, .next = range.start};
      if (done) continue;
      new_.push_back(range.partition);
      ++open_;
      library_.list_add(list, topic_.topic.c_str(), range.partition);
      (void)library_.list_set_offset(list, topic_.topic.c_str(), range.partition, range.start);
    }
    begun_ = true;
    changed_.notify_all();
  }
  kafka::Error* const error = library_.incremental_assign(client_, list);
  library_.list_destroy(list);
  if (error == nullptr) return;
  const std::string why = library_.error_string(error);
  library_.error_destroy(error);
  throw std::runtime_error(why);
}

void KafkaConsumer::fail(std::string message) {
  const Lock lock(mutex_);
  if (!failure_.has_value()) failure_ = std::move(message);
  changed_.notify_all();
  library_.queue_yield(queue_);
}

void KafkaConsumer::interrupt() {
  const Lock lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
  library_.queue_yield(queue_);
}

std::optional<KafkaEvent> KafkaConsumer::next_event(std::chrono::milliseconds wait) {
  Lock lock(mutex_);
  changed_.wait_for(lock, wait, [this]() REL_HELD(mutex_) { return !events_.empty() || is_over_locked(); });
  if (events_.empty()) return std::nullopt;
  KafkaEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

bool KafkaConsumer::is_over() const {
  const Lock lock(mutex_);
  return is_over_locked();
}

bool KafkaConsumer::is_over_locked() const { return interrupted_ || failure_.has_value() || (begun_ && open_ == 0); }

std::vector<std::pair<std::int32_t, std::int64_t>> KafkaConsumer::position(std::int64_t emitted) {
  const Lock lock(mutex_);
  std::int64_t left = std::max<std::int64_t>(0, emitted - counted_);
  counted_ += left;
  while (!segments_.empty() && left > 0) {
    Segment& segment = segments_.front();
    const std::int64_t count = std::min(left, segment.records);
    left -= count;
    segment.first += count;
    segment.records -= count;
    auto& held = partitions_[static_cast<std::size_t>(segment.partition)].held;
    held = segment.records == 0 ? segment.next : segment.first;
    if (segment.records == 0) segments_.pop_front();
  }
  counted_ -= left;
  std::vector<std::pair<std::int32_t, std::int64_t>> positions;
  for (std::size_t number = 0; number < partitions_.size(); ++number)
    if (partitions_[number].assigned) positions.emplace_back(static_cast<std::int32_t>(number), partitions_[number].held);
  return positions;
}

void KafkaConsumer::set_ends(const std::vector<std::pair<std::int32_t, std::int64_t>>& ends) {
  const Lock lock(mutex_);
  for (const auto& [number, end] : ends) {
    if (const auto at = static_cast<std::size_t>(number); at < partitions_.size()) partitions_[at].topic_end = end;
  }
}

KafkaLag KafkaConsumer::lag() const {
  const Lock lock(mutex_);
  KafkaLag lag;
  for (const Partition& partition : partitions_) {
    const std::int64_t end = partition.end < 0 ? partition.topic_end : partition.end;
    if (!partition.assigned || partition.done || end <= partition.next) continue;
    lag.messages += end - partition.next;
    if (partition.read_at >= 0) lag.read_at = std::min(lag.read_at.value_or(partition.read_at), partition.read_at);
  }
  return lag;
}

std::int64_t KafkaConsumer::dropped() const {
  const Lock lock(mutex_);
  return dropped_;
}

std::vector<KafkaEvent> KafkaConsumer::first_dropped() const {
  const Lock lock(mutex_);
  return first_dropped_;
}

std::size_t KafkaConsumer::consume(kafka::Message** messages, std::size_t room) {
  {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() REL_HELD(mutex_) { return begun_ || is_over_locked(); });
  }
  while (!is_over()) {
    ssize_t count = library_.consume_batch_queue(queue_, 0, messages, room);
    if (count == 0) {  // a longer wait for more than one waits for all
      count = library_.consume_batch_queue(queue_, kLook, messages, 1);
      if (count == 1 && room > 1) count += std::max<ssize_t>(0, library_.consume_batch_queue(queue_, 0, messages + 1, room - 1));
    }
    if (count > 0) return static_cast<std::size_t>(count);
  }
  return 0;
}

bool KafkaConsumer::on_error(const kafka::Message& message) {
  if (message.err == kafka::kPartitionEnd) {
    const Lock lock(mutex_);
    Partition& partition = partitions_[static_cast<std::size_t>(message.partition)];
    partition.next = std::max(partition.next, message.offset);  // marks of transactions come before it, which no reader sees
    return partition.end >= 0 && message.offset >= partition.end && finish_partition(message.partition);
  }
  const std::string text(static_cast<const char*>(message.payload), message.payload != nullptr ? message.len : 0);
  report({.name = library_.err2name(message.err), .partition = message.partition, .offset = message.offset, .text = text});
  return false;
}

std::int64_t KafkaConsumer::limit(std::int32_t number) const {
  const Lock lock(mutex_);
  const Partition& partition = partitions_[static_cast<std::size_t>(number)];
  if (partition.done) return 0;
  return partition.end < 0 ? std::numeric_limits<std::int64_t>::max() : partition.end;
}

bool KafkaConsumer::read(std::int32_t number, std::int64_t first, std::int64_t records, std::int64_t next, std::int64_t read_at) {
  const Lock lock(mutex_);
  Partition& partition = partitions_[static_cast<std::size_t>(number)];
  partition.next = std::max(partition.next, next);  // its end may have been reported before
  if (read_at >= 0) partition.read_at = read_at;
  Segment* const last = segments_.empty() ? nullptr : &segments_.back();
  if (last != nullptr && last->partition == number && last->first + last->records == first && last->next == first) {
    last->records += records;
    last->next = next;
  } else if (records > 0) {
    segments_.push_back({.partition = number, .first = first, .records = records, .next = next});
  } else {  // what was dropped goes with the records of the partition before it
    const auto before =
        std::find_if(segments_.rbegin(), segments_.rend(), [number](const Segment& one) { return one.partition == number; });
    (before != segments_.rend() ? before->next : partition.held) = next;
  }
  return partition.end >= 0 && next >= partition.end && finish_partition(number);
}

bool KafkaConsumer::finish_partition(std::int32_t number) {
  Partition& partition = partitions_[static_cast<std::size_t>(number)];
  if (partition.done) return false;
  partition.done = true;
  --open_;
  kafka::Partitions* const list = library_.list_new(1);
  library_.list_add(list, topic_.topic.c_str(), number);
  (void)library_.pause_partitions(client_, list);
  library_.list_destroy(list);
  if (open_ == 0) changed_.notify_all();
  return true;
}

void KafkaConsumer::drop(KafkaEvent bad) {
  const Lock lock(mutex_);
  ++dropped_;
  if (first_dropped_.size() < kFirstDropped) first_dropped_.push_back(std::move(bad));
}

void KafkaConsumer::report(KafkaEvent event) {
  const Lock lock(mutex_);
  if (events_.size() < kMostEvents) events_.push_back(std::move(event));
  changed_.notify_all();
}

void KafkaConsumer::await_decision() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REL_HELD(mutex_) { return interrupted_ || failure_.has_value(); });
}

std::optional<std::string> KafkaConsumer::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

std::vector<std::int32_t> KafkaConsumer::new_partitions() {
  const Lock lock(mutex_);
  return std::exchange(new_, {});
}

}  // namespace rayelastic
