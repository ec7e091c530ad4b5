// rayelastic._native.KafkaConsumer: a topic that a native source reads, and what Python decides of it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <stdexcept>
#include <string_view>

#include "rayelastic/operators/kafka/consumer.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

struct KafkaObject {
  std::shared_ptr<KafkaConsumer> consumer;
  // The last owner waits for librdkafka's threads.
  ~KafkaObject() {
    const nb::gil_scoped_release released;
    consumer.reset();
  }
};

using Event = std::tuple<std::string, std::int32_t, std::int64_t, std::string>;  // name, partition, offset, text

Event event_of(const KafkaEvent& event) { return {event.name, event.partition, event.offset, event.text}; }

KafkaFormat format_of(const std::string& format) {
  if (format == "bytes") return KafkaFormat::Bytes;
  if (format == "text") return KafkaFormat::Text;
  if (format == "json") return KafkaFormat::Json;
  throw std::invalid_argument("format is '" + format + "', not 'bytes', 'text' or 'json'");
}

KafkaFields fields_of(const std::vector<std::pair<std::string, std::int32_t>>& numbers) {
  constexpr std::string_view kHeader = "header:";
  KafkaFields fields;
  for (const auto& [part, number] : numbers) {
    if (part.starts_with(kHeader)) {
      fields.headers.push_back({.name = part.substr(kHeader.size()), .field = number});
    } else if (part == "key") {
      fields.key = number;
    } else if (part == "timestamp") {
      fields.timestamp = number;
    } else if (part == "partition") {
      fields.partition = number;
    } else if (part == "offset") {
      fields.offset = number;
    } else {
      throw std::invalid_argument("a message has no '" + part + "'");
    }
  }
  return fields;
}

void make(KafkaObject* self, std::string library, std::vector<std::pair<std::string, std::string>> settings, std::string topic,
          const std::string& format, const std::vector<std::pair<std::string, std::int32_t>>& fields, bool skips,
          const SchemaObject* expected, std::string reader) {
  KafkaTopic described{.library = std::move(library),
                       .settings = std::move(settings),
                       .topic = std::move(topic),
                       .format = format_of(format),
                       .fields = fields_of(fields),
                       .skips = skips,
                       .expected = expected != nullptr ? expected->schema : nullptr,
                       .reader = std::move(reader)};
  const nb::gil_scoped_release released;
  new (self) KafkaObject{std::make_shared<KafkaConsumer>(std::move(described))};
}

void assign(KafkaObject& self, const std::vector<std::tuple<std::int32_t, std::int64_t, std::int64_t>>& ranges) {
  std::vector<KafkaRange> assigned;
  for (const auto& [partition, start, end] : ranges) assigned.push_back({.partition = partition, .start = start, .end = end});
  self.consumer->assign(assigned);
}

}  // namespace

void bind_kafka(nb::module_& module) {
  nb::class_<KafkaObject>(module, "KafkaConsumer",
                          "A consumer of a Kafka topic, read by Operator.kafka_source. RuntimeError: the library can't be loaded, or a "
                          "setting is invalid.")
      .def("__init__", make, nb::arg("library"), nb::arg("settings"), nb::arg("topic"), nb::arg("format"), nb::arg("fields"),
           nb::arg("skips"), nb::arg("expected") = nb::none(), nb::arg("reader") = "",
           "library: the file of librdkafka. fields: key, timestamp, partition, offset or header:NAME, and the number of its field. "
           "expected: "
           "the source emits dead letters of the messages that aren't of this schema, and of the source with the name `reader`.")
      .def("assign", assign, nb::arg("ranges"), nb::call_guard<nb::gil_scoped_release>(),
           "Reads these partitions, too: (partition, first offset, offset after the last one, or -1).")
      .def(
          "fail", [](KafkaObject& self, std::string message) { self.consumer->fail(std::move(message)); }, nb::arg("message"),
          nb::call_guard<nb::gil_scoped_release>(), "The source fails with this message.")
      .def(
          "interrupt", [](KafkaObject& self) { self.consumer->interrupt(); }, nb::call_guard<nb::gil_scoped_release>(), "The source ends.")
      .def(
          "next_event",
          [](KafkaObject& self, double seconds) -> std::optional<Event> {
            const auto wait = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
            const std::optional<KafkaEvent> event = self.consumer->next_event(wait);
            return event.has_value() ? std::optional(event_of(*event)) : std::nullopt;
          },
          nb::arg("seconds"), nb::call_guard<nb::gil_scoped_release>(),
          "The next event, waiting for it: name, partition, offset and text. None: there was none, or the source is over.")
      .def_prop_ro(
          "is_over", [](const KafkaObject& self) { return self.consumer->is_over(); },
          "Whether it was interrupted, has failed, or was read to the end.")
      .def(
          "position", [](KafkaObject& self, std::int64_t emitted) { return self.consumer->position(emitted); }, nb::arg("emitted"),
          nb::call_guard<nb::gil_scoped_release>(), "The next offset of each partition after so many records.")
      .def(
          "set_ends",
          [](KafkaObject& self, const std::vector<std::pair<std::int32_t, std::int64_t>>& ends) { self.consumer->set_ends(ends); },
          nb::arg("ends"), "Where partitions end now: (partition, offset after its last message).")
      .def(
          "lag",
          [](const KafkaObject& self) {
            const KafkaLag lag = self.consumer->lag();
            return std::pair(lag.messages, lag.read_at);
          },
          "Unread messages, and the timestamp of the last one read, ms since 1970; of several partitions, the oldest.")
      .def_prop_ro(
          "dropped", [](const KafkaObject& self) { return self.consumer->dropped(); }, "Messages that didn't decode.")
      .def_prop_ro(
          "first_dropped",
          [](const KafkaObject& self) {
            std::vector<Event> events;
            for (const KafkaEvent& event : self.consumer->first_dropped()) events.push_back(event_of(event));
            return events;
          },
          "The first of them: 'bad-record', partition, offset and why.");
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "kafka_source",
          [](std::string name, const SchemaObject& output, const KafkaObject& consumer) {
            return OperatorObject{.op = make_kafka_source(std::move(name), output.schema, consumer.consumer)};
          },
          nb::arg("name"), nb::arg("output"), nb::arg("consumer"), "The messages of a topic that a KafkaConsumer reads.");
}

}  // namespace rayelastic::python
