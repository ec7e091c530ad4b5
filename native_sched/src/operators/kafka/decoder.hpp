// Makes a record of a message: its key, timestamp, partition, offset and headers where they are asked for, and its value as bytes, text, or
// the fields of an object of JSON. JSON follows the rules of rayelastic/connectors/json/values.py; a test compares the two.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rayelastic/operators/kafka/consumer.hpp"
#include "text/json_reader.hpp"

namespace rayelastic::kafka {

struct Message;

// Writes a text, whose bytes go to `texts` unless they fit into the record.
void put_text(const Schema& schema, const Field& field, std::string_view text, std::byte* record, char*& texts);

class Decoder {
 public:
  // Throws std::invalid_argument: the schema doesn't fit.
  Decoder(const KafkaTopic& topic, std::shared_ptr<const Schema> schema, const Library& library);

  // The most bytes that the texts of its record have.
  [[nodiscard]] std::size_t most_bytes(const Message& message) const;

  // Writes the record, whose texts go to `texts`, which is moved behind them. Returns why it isn't of the schema; empty: it is.
  [[nodiscard]] std::string decode(const Message& message, std::byte* record, char*& texts);

 private:
  struct Seen {
    std::string_view literal;
    bool is_there = false;
    bool is_twice = false;
  };

  // The last value of a header; none: the message has no such header, or one without a value.
  [[nodiscard]] std::optional<std::string_view> header(const Message& message, const std::string& name) const;
  // Writes a key or header. Returns why it doesn't fit its field.
  [[nodiscard]] std::string put_part(std::int32_t number, const std::string& part, std::optional<std::string_view> value, std::byte* record,
                                     char*& texts) const;
  [[nodiscard]] std::string decode_metadata(const Message& message, std::byte* record, char*& texts) const;
  [[nodiscard]] std::string decode_object(std::string_view text, std::byte* record, char*& texts);
  [[nodiscard]] std::string decode_value(const Field& field, std::string_view literal, std::byte* record, char*& texts) const;
  void note_member(const json::Quoted& key, std::string_view literal);

  const KafkaTopic& topic_;
  const std::shared_ptr<const Schema> schema_;
  const Library& library_;
  std::vector<const Field*> values_;  // the fields of the value
  std::vector<Seen> seen_;            // of the object that is being read, by field
  std::size_t next_ = 0;              // the field that comes next in most objects
};

}  // namespace rayelastic::kafka
