#include "operators/kafka/librdkafka.hpp"

#include <dlfcn.h>

#include <map>
#include <stdexcept>

#include "rayelastic/mutex.hpp"

namespace rayelastic::kafka {

namespace {

template <typename Function>
void find(void* file, const char* name, Function*& function) {
  void* const address = dlsym(file, name);
  if (address == nullptr) throw std::runtime_error(std::string("librdkafka has no ") + name);
  function = reinterpret_cast<Function*>(address);
}

Library loaded(const std::string& path) {
  // The wheel's module has loaded the same file, so both share one library. It stays loaded: its threads may run until the process ends.
  void* const file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (file == nullptr) {
    const char* const why = dlerror();
    throw std::runtime_error(why != nullptr ? why : path);
  }
  Library library{};
  find(file, "rd_kafka_conf_new", library.conf_new);
  find(file, "rd_kafka_conf_destroy", library.conf_destroy);
  find(file, "rd_kafka_conf_set", library.conf_set);
  find(file, "rd_kafka_conf_set_opaque", library.conf_set_opaque);
  find(file, "rd_kafka_conf_set_error_cb", library.conf_set_error_cb);
  find(file, "rd_kafka_new", library.create);
  find(file, "rd_kafka_destroy_flags", library.destroy_flags);
  find(file, "rd_kafka_poll_set_consumer", library.poll_set_consumer);
  find(file, "rd_kafka_queue_get_consumer", library.queue_get_consumer);
  find(file, "rd_kafka_queue_destroy", library.queue_destroy);
  find(file, "rd_kafka_queue_yield", library.queue_yield);
  find(file, "rd_kafka_consume_batch_queue", library.consume_batch_queue);
  find(file, "rd_kafka_message_destroy", library.message_destroy);
  find(file, "rd_kafka_message_timestamp", library.message_timestamp);
  find(file, "rd_kafka_message_headers", library.message_headers);
  find(file, "rd_kafka_header_get_last", library.header_get_last);
  find(file, "rd_kafka_topic_partition_list_new", library.list_new);
  find(file, "rd_kafka_topic_partition_list_add", library.list_add);
  find(file, "rd_kafka_topic_partition_list_set_offset", library.list_set_offset);
  find(file, "rd_kafka_topic_partition_list_destroy", library.list_destroy);
  find(file, "rd_kafka_incremental_assign", library.incremental_assign);
  find(file, "rd_kafka_error_string", library.error_string);
  find(file, "rd_kafka_error_destroy", library.error_destroy);
  find(file, "rd_kafka_pause_partitions", library.pause_partitions);
  find(file, "rd_kafka_err2str", library.err2str);
  find(file, "rd_kafka_err2name", library.err2name);
  return library;
}

}  // namespace

const Library& library_at(const std::string& path) {
  static Mutex mutex;
  static std::map<std::string, Library> libraries;  // of path, guarded by `mutex`
  const Lock lock(mutex);
  const auto known = libraries.find(path);
  return known != libraries.end() ? known->second : libraries.emplace(path, loaded(path)).first->second;
}

}  // namespace rayelastic::kafka
