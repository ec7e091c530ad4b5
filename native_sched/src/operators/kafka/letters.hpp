// Makes a record of a message that isn't of the schema of a source: a dead letter. Its fields are the topic, the partition and the offset of
// the message, its key and value as bytes, why it isn't of the schema, and the name of the source.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "operators/kafka/decoder.hpp"
#include "rayelastic/operators/kafka/consumer.hpp"

namespace rayelastic::kafka {

class Letters {
 public:
  // The topic has an expected schema. Throws std::invalid_argument: `output` isn't the schema of dead letters.
  Letters(const KafkaTopic& topic, std::shared_ptr<const Schema> output, const Library& library);

  // Writes the dead letter of a message, whose texts live as long as the records that are emitted next. Returns false for a message that is
  // of the schema.
  [[nodiscard]] bool write(const Message& message, std::byte* record, rel_context* context);

 private:
  const KafkaTopic& topic_;
  const std::shared_ptr<const Schema> output_;
  Decoder decoder_;
  std::vector<std::byte> record_;  // that is dropped
  std::vector<char> texts_;
};

}  // namespace rayelastic::kafka
