#include "operators/kafka/decoder.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "operators/kafka/librdkafka.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/text/text.h"

namespace rayelastic::kafka {

namespace {

constexpr int kDeepest = 60;               // levels of an object, as in files of JSON
constexpr std::size_t kLongestWhole = 20;  // characters
constexpr std::size_t kShown = 40;         // bytes of a value in a message
constexpr std::int64_t kMicroseconds = 1000;

const char* shown_type(Type type) {
  switch (type) {
    case Type::Bool:
      return "bool";
    case Type::Float64:
      return "float";
    case Type::String:
      return "str";
    default:
      return "int";
  }
}

bool is_whole(std::string_view number) noexcept {
  if (number.starts_with('-')) number.remove_prefix(1);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_number(std::string_view literal) noexcept {
  return !literal.empty() && std::string_view("\"{[tfn").find(literal.front()) == std::string_view::npos;
}

template <typename Number>
bool put_whole(std::string_view literal, std::byte* to) noexcept {
  Number number{};
  if (std::is_unsigned_v<Number> && literal == "-0") literal.remove_prefix(1);
  const char* const end = literal.data() + literal.size();
  const auto [stop, problem] = std::from_chars(literal.data(), end, number);
  if (problem != std::errc() || stop != end) return false;
  std::memcpy(to, &number, sizeof number);
  return true;
}

bool put_integer(Type type, std::string_view literal, std::byte* to) noexcept {
  if (!is_whole(literal) || literal.size() > kLongestWhole) return false;
  switch (type) {
    case Type::Int8:
      return put_whole<std::int8_t>(literal, to);
    case Type::Int16:
      return put_whole<std::int16_t>(literal, to);
    case Type::Int32:
      return put_whole<std::int32_t>(literal, to);
    case Type::Int64:
      return put_whole<std::int64_t>(literal, to);
    case Type::UInt8:
      return put_whole<std::uint8_t>(literal, to);
    case Type::UInt16:
      return put_whole<std::uint16_t>(literal, to);
    case Type::UInt32:
      return put_whole<std::uint32_t>(literal, to);
    case Type::UInt64:
      return put_whole<std::uint64_t>(literal, to);
    default:
      return false;
  }
}

bool put_float(std::string_view literal, std::byte* to) {
  double number = 0;
  if (literal == "NaN") {
    number = std::numeric_limits<double>::quiet_NaN();
  } else if (literal == "Infinity" || literal == "-Infinity") {
    number = literal.front() == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else {
    const auto [stop, problem] = std::from_chars(literal.data(), literal.data() + literal.size(), number);
    if (problem == std::errc::result_out_of_range) number = std::strtod(std::string(literal).c_str(), nullptr);  // 0, or infinite
    if (std::isinf(number)) return false;
  }
  std::memcpy(to, &number, sizeof number);
  return true;
}

void set_valid(const Schema& schema, const Field& field, std::byte* record) {
  if (field.validity < 0) return;
  const auto bit = static_cast<std::size_t>(field.validity);
  record[schema.validity_offset() + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
}

}  // namespace

void put_text(const Schema& schema, const Field& field, std::string_view text, std::byte* record, char*& texts) {
  const char* data = text.data();
  if (text.size() > StringView::kInlineBytes) {
    std::memcpy(texts, text.data(), text.size());
    data = texts;
    texts += text.size();
  }
  const StringView view(data, static_cast<std::uint32_t>(text.size()));
  std::memcpy(record + field.offset, &view, sizeof view);
  set_valid(schema, field, record);
}

Decoder::Decoder(const KafkaTopic& topic, std::shared_ptr<const Schema> schema, const Library& library)
    : topic_(topic), schema_(std::move(schema)), library_(library) {
  const auto count = static_cast<std::int32_t>(schema_->fields().size());
  const KafkaFields& fields = topic.fields;
  std::vector<std::int32_t> others = {fields.key, fields.timestamp, fields.partition, fields.offset};
  for (const KafkaHeader& header : fields.headers) others.push_back(header.field);
  for (const std::int32_t field : others)
    if (field < -1 || field >= count) throw std::invalid_argument("a field of the message isn't in the schema");
  for (std::int32_t number = 0; number < count; ++number) {
    if (std::find(others.begin(), others.end(), number) == others.end())
      values_.push_back(&schema_->fields()[static_cast<std::size_t>(number)]);
  }
  if (topic.format != KafkaFormat::Json && values_.size() != 1) throw std::invalid_argument("bytes and text have one field");
  seen_.resize(values_.size());
}

std::string Decoder::decode(const Message& message, std::byte* record, char*& texts) {
  std::memset(record, 0, schema_->record_size());
  if (std::string problem = decode_metadata(message, record, texts); !problem.empty()) return problem;
  const std::string_view value(static_cast<const char*>(message.payload), message.payload != nullptr ? message.len : 0);
  const Field& field = *values_.front();
  if (message.payload == nullptr) {
    if (topic_.format != KafkaFormat::Json && field.nullable) return {};
    return "it has no value";
  }
  if (topic_.format == KafkaFormat::Json) return decode_object(value, record, texts);
  if (topic_.format == KafkaFormat::Text && rel_text_is_valid(value.data(), static_cast<std::int64_t>(value.size())) == 0)
    return "its value isn't UTF-8";
  put_text(*schema_, field, value, record, texts);
  return {};
}

std::string Decoder::decode_metadata(const Message& message, std::byte* record, char*& texts) const {
  const auto put = [this, record](std::int32_t field, std::int64_t value) {
    std::memcpy(record + schema_->fields()[static_cast<std::size_t>(field)].offset, &value, sizeof value);
  };
  if (topic_.fields.partition >= 0) put(topic_.fields.partition, message.partition);
  if (topic_.fields.offset >= 0) put(topic_.fields.offset, message.offset);
  if (topic_.fields.timestamp >= 0) {
    int type = kNoTimestamp;
    const std::int64_t milliseconds = library_.message_timestamp(&message, &type);
    if (type == kNoTimestamp) return "it has no timestamp";
    put(topic_.fields.timestamp, milliseconds * kMicroseconds);
  }
  std::string problem;
  if (topic_.fields.key >= 0) {
    const auto* const key = static_cast<const char*>(message.key);
    const std::optional<std::string_view> value = key != nullptr ? std::optional(std::string_view(key, message.key_len)) : std::nullopt;
    problem = put_part(topic_.fields.key, "key", value, record, texts);
  }
  for (const KafkaHeader& asked : topic_.fields.headers) {
    if (problem.empty()) problem = put_part(asked.field, "header '" + asked.name + "'", header(message, asked.name), record, texts);
  }
  return problem;
}

std::string Decoder::put_part(std::int32_t number, const std::string& part, std::optional<std::string_view> value, std::byte* record,
                              char*& texts) const {
  const Field& field = schema_->fields()[static_cast<std::size_t>(number)];
  if (!value.has_value()) return field.nullable ? "" : "it has no " + part;
  if (field.type == Type::String && rel_text_is_valid(value->data(), static_cast<std::int64_t>(value->size())) == 0)
    return "its " + part + " isn't UTF-8";
  put_text(*schema_, field, *value, record, texts);
  return {};
}

std::optional<std::string_view> Decoder::header(const Message& message, const std::string& name) const {
  Headers* headers = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  if (library_.message_headers(&message, &headers) != kNoError) return std::nullopt;
  if (library_.header_get_last(headers, name.c_str(), &value, &bytes) != kNoError || value == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(value), bytes);
}

std::size_t Decoder::most_bytes(const Message& message) const {
  std::size_t bytes = message.len + message.key_len;
  for (const KafkaHeader& asked : topic_.fields.headers) bytes += header(message, asked.name).value_or(std::string_view()).size();
  return bytes;
}

void Decoder::note_member(const json::Quoted& key, std::string_view literal) {
  for (std::size_t tried = 0; tried < values_.size(); ++tried) {
    if (next_ == values_.size()) next_ = 0;
    const std::size_t at = next_++;
    if (!json::is_text(key, values_[at]->name)) continue;
    seen_[at] = {.literal = literal, .is_there = true, .is_twice = seen_[at].is_there};
    return;
  }
}

std::string Decoder::decode_object(std::string_view text, std::byte* record, char*& texts) {
  if (rel_text_is_valid(text.data(), static_cast<std::int64_t>(text.size())) == 0) return "it isn't UTF-8";
  std::fill(seen_.begin(), seen_.end(), Seen{});
  next_ = 0;
  json::Cursor cursor(text);
  cursor.skip_space();
  const bool is_object = cursor.take('{') && json::each_member(cursor, kDeepest, [this](const json::Quoted& key, std::string_view literal) {
                           note_member(key, literal);
                         });
  cursor.skip_space();
  if (!is_object || !cursor.is_done()) return "it isn't one JSON object";
  for (std::size_t at = 0; at < values_.size(); ++at) {
    const Field& field = *values_[at];
    if (seen_[at].is_twice) return "it has '" + field.name + "' twice in one object";
    if (seen_[at].is_there && seen_[at].literal != json::kNull) {
      if (std::string problem = decode_value(field, seen_[at].literal, record, texts); !problem.empty()) return problem;
    } else if (!field.nullable) {
      return "field '" + field.name + "' is null or absent, but " + shown_type(field.type) + " is declared without None";
    }
  }
  return {};
}

std::string Decoder::decode_value(const Field& field, std::string_view literal, std::byte* record, char*& texts) const {
  std::byte* const to = record + field.offset;
  bool fits = false;
  if (field.type == Type::Bool) {
    fits = literal == "true" || literal == "false";
    if (literal == "true") *to = std::byte{1};
  } else if (field.type == Type::String) {
    if (literal.front() == '"') {
      const std::string_view inner = literal.substr(1, literal.size() - 2);
      if (inner.find('\\') == std::string_view::npos) {
        put_text(*schema_, field, inner, record, texts);
        return {};
      }
      const std::optional<std::string> text = json::decoded(inner);
      if (!text.has_value()) return "it has half of a surrogate pair, which is no character";
      put_text(*schema_, field, *text, record, texts);
      return {};
    }
    fits = is_number(literal);
    if (fits) put_text(*schema_, field, literal, record, texts);
    if (fits) return {};
  } else if (field.type == Type::Float64) {
    fits = is_number(literal) && put_float(literal, to);
  } else {
    fits = is_number(literal) && put_integer(field.type, literal, to);
  }
  if (!fits) return std::string(literal.substr(0, kShown)) + " of field '" + field.name + "' doesn't fit the " + shown_type(field.type);
  set_valid(*schema_, field, record);
  return {};
}

}  // namespace rayelastic::kafka
