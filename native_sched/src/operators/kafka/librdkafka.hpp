// librdkafka as function pointers, from a file that is loaded at run time: the wheel of confluent-kafka brings one without headers.
// Declared as in its C API of 2.x (librdkafka/rdkafka.h), no more of it than is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>

namespace rayelastic::kafka {

struct Client;  // rd_kafka_t
struct Conf;
struct Queue;
struct Partitions;  // rd_kafka_topic_partition_list_t
struct Error;
struct Headers;

struct Message {  // rd_kafka_message_t
  int err;
  void* topic;
  std::int32_t partition;
  void* payload;
  std::size_t len;
  void* key;
  std::size_t key_len;
  std::int64_t offset;
  void* opaque;
};

// rd_kafka_resp_err_t
inline constexpr int kNoError = 0;
inline constexpr int kPartitionEnd = -191;  // _PARTITION_EOF
// rd_kafka_type_t and other constants
inline constexpr int kConsumer = 1;
inline constexpr int kWithoutClose = 0x8;  // RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE: there is no group to leave
inline constexpr int kConfOk = 0;
inline constexpr int kNoTimestamp = 0;  // RD_KAFKA_TIMESTAMP_NOT_AVAILABLE

struct Library {
  Conf* (*conf_new)();
  void (*conf_destroy)(Conf*);
  int (*conf_set)(Conf*, const char* name, const char* value, char* problem, std::size_t bytes);
  void (*conf_set_opaque)(Conf*, void*);
  void (*conf_set_error_cb)(Conf*, void (*)(Client*, int error, const char* reason, void* opaque));
  Client* (*create)(int type, Conf*, char* problem, std::size_t bytes);
  void (*destroy_flags)(Client*, int flags);
  int (*poll_set_consumer)(Client*);
  Queue* (*queue_get_consumer)(Client*);
  void (*queue_destroy)(Queue*);
  void (*queue_yield)(Queue*);
  ssize_t (*consume_batch_queue)(Queue*, int timeout_ms, Message**, std::size_t);
  void (*message_destroy)(Message*);
  std::int64_t (*message_timestamp)(const Message*, int* type);
  int (*message_headers)(const Message*, Headers**);
  int (*header_get_last)(const Headers*, const char* name, const void** value, std::size_t* bytes);
  Partitions* (*list_new)(int size);
  void* (*list_add)(Partitions*, const char* topic, std::int32_t partition);
  int (*list_set_offset)(Partitions*, const char* topic, std::int32_t partition, std::int64_t offset);
  void (*list_destroy)(Partitions*);
  Error* (*incremental_assign)(Client*, const Partitions*);
  const char* (*error_string)(const Error*);
  void (*error_destroy)(Error*);
  int (*pause_partitions)(Client*, Partitions*);
  const char* (*err2str)(int);
  const char* (*err2name)(int);
};

// Loads the file, once in a process. Throws std::runtime_error: it can't be loaded, or it lacks a function.
[[nodiscard]] const Library& library_at(const std::string& path);

}  // namespace rayelastic::kafka
