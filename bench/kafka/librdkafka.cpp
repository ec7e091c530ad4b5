// What librdkafka itself needs to read a topic: batches of messages, each destroyed at once. `bench.kafka` compiles and runs it.
//
//   librdkafka LIBRARY TOPIC PARTITIONS MESSAGES NAME=VALUE...
//
// Prints the messages after the first batch, and their seconds and CPU seconds.
#include "operators/kafka/librdkafka.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace {

constexpr std::size_t kBatch = 2048;  // messages, as our source
constexpr int kWait = 100;            // ms

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) return 2;
  const rayelastic::kafka::Library& library = rayelastic::kafka::library_at(arguments[1]);
  const std::string topic = arguments[2];
  const int partitions = std::atoi(arguments[3]);
  const long wanted = std::atol(arguments[4]);
  std::array<char, 512> problem{};
  rayelastic::kafka::Conf* const conf = library.conf_new();
  for (int at = 5; at < count; ++at) {
    const std::string setting = arguments[at];
    const std::size_t equals = setting.find('=');
    if (library.conf_set(conf, setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), problem.data(), problem.size()) !=
        0) {
      std::fprintf(stderr, "%s\n", problem.data());
      return 1;
    }
  }
  rayelastic::kafka::Client* const client = library.create(rayelastic::kafka::kConsumer, conf, problem.data(), problem.size());
  (void)library.poll_set_consumer(client);
  rayelastic::kafka::Queue* const queue = library.queue_get_consumer(client);
  rayelastic::kafka::Partitions* const list = library.list_new(partitions);
  for (int number = 0; number < partitions; ++number) {
    library.list_add(list, topic.c_str(), number);
    (void)library.list_set_offset(list, topic.c_str(), number, 0);
  }
  (void)library.incremental_assign(client, list);
  std::array<rayelastic::kafka::Message*, kBatch> messages{};
  long seen = 0;
  long first = 0;
  double began = 0;
  double began_cpu = 0;
  while (seen < wanted) {
    ssize_t got = library.consume_batch_queue(queue, 0, messages.data(), kBatch);
    if (got == 0) got = library.consume_batch_queue(queue, kWait, messages.data(), 1);
    for (ssize_t at = 0; at < got; ++at) {
      seen += messages[static_cast<std::size_t>(at)]->err == rayelastic::kafka::kNoError ? 1 : 0;
      library.message_destroy(messages[static_cast<std::size_t>(at)]);
    }
    if (first == 0 && seen > 0) {
      first = seen;
      began = seconds_of(CLOCK_MONOTONIC);
      began_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    }
  }
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - began_cpu;
  std::printf("{\"records\": %ld, \"seconds\": %.6f, \"cpu\": %.6f}\n", seen - first, seconds_of(CLOCK_MONOTONIC) - began, cpu);
  return 0;
}
