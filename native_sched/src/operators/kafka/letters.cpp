#include "operators/kafka/letters.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "operators/kafka/librdkafka.hpp"

namespace rayelastic::kafka {

namespace {

constexpr std::array kTypes{Type::String, Type::Int64, Type::Int64, Type::Binary, Type::Binary, Type::String, Type::String};

std::optional<std::string_view> part(const void* data, std::size_t bytes) {
  return data != nullptr ? std::optional(std::string_view(static_cast<const char*>(data), bytes)) : std::nullopt;
}

}  // namespace

Letters::Letters(const KafkaTopic& topic, std::shared_ptr<const Schema> output, const Library& library)
    : topic_(topic), output_(std::move(output)), decoder_(topic, topic.expected, library), record_(topic.expected->record_size()) {
  bool fits = output_->fields().size() == kTypes.size();
  for (std::size_t at = 0; fits && at < kTypes.size(); ++at) fits = output_->fields()[at].type == kTypes[at];
  if (!fits) throw std::invalid_argument("dead letters have another schema");
}

bool Letters::write(const Message& message, std::byte* record, rel_context* context) {
  texts_.resize(message.len + message.key_len);
  char* scratch = texts_.data();
  const std::string problem = decoder_.decode(message, record_.data(), scratch);
  if (problem.empty()) return false;
  const std::array<std::optional<std::string_view>, kTypes.size()> texts{
      topic_.topic, std::nullopt, std::nullopt, part(message.key, message.key_len), part(message.payload, message.len),
      problem,      topic_.reader};
  std::size_t bytes = 0;
  for (const auto& text : texts) bytes += text.has_value() ? text->size() : 0;
  auto* to = static_cast<char*>(context->allocate(bytes));
  std::memset(record, 0, output_->record_size());
  std::memcpy(record + output_->fields()[1].offset, std::array{static_cast<std::int64_t>(message.partition)}.data(), sizeof(std::int64_t));
  std::memcpy(record + output_->fields()[2].offset, &message.offset, sizeof message.offset);
  for (std::size_t at = 0; at < texts.size(); ++at) {
    if (texts[at].has_value()) put_text(*output_, output_->fields()[at], *texts[at], record, to);
  }
  return true;
}

}  // namespace rayelastic::kafka
