// Makes a record of a message: its key, timestamp, partition and offset where they are asked for, and its value as bytes, text, or the
// fields of an object of JSON. JSON follows the rules of rayelastic/connectors/json/values.py; a test compares the two.
#pragma once

#include <cstddef>
#include <memory>
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

  // Writes the record, whose texts go to `texts`, which is moved behind them: no more bytes than key and value have. Returns why it isn't of
  // the schema; empty: it is.
  [[nodiscard]] std::string decode(const Message& message, std::byte* record, char*& texts);

 private:
  struct Seen {
    std::string_view literal;
    bool is_there = false;
    bool is_twice = false;
  };

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
