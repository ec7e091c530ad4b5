#include "rayelastic/operator/dead_letters.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

namespace {

constexpr std::size_t kAddedFields = 2;  // error and operator

std::size_t validity_bytes(const Schema& schema) {
  std::size_t nullable = 0;
  for (const Field& field : schema.fields()) nullable += field.nullable ? 1 : 0;
  return (nullable + 7) / 8;
}

StringView text_in(rel_context* context, std::string_view text) {
  if (text.size() <= StringView::kInlineBytes) return {text.data(), static_cast<std::uint32_t>(text.size())};
  auto* kept = static_cast<char*>(context->allocate(text.size()));
  if (kept == nullptr) return {};
  std::memcpy(kept, text.data(), text.size());
  return {kept, static_cast<std::uint32_t>(text.size())};
}

}  // namespace

DeadLetters::DeadLetters(const Schema& input, std::shared_ptr<const Schema> letters, std::string operator_name)
    : letters_(std::move(letters)),
      operator_(std::move(operator_name)),
      copied_(input.validity_offset()),
      validity_(validity_bytes(input)),
      validity_from_(input.validity_offset()) {
  const auto& fields = letters_->fields();
  bool fits = fields.size() == input.fields().size() + kAddedFields;
  for (std::size_t i = 0; fits && i < fields.size(); ++i) {
    fits = i < input.fields().size() ? fields[i].type == input.fields()[i].type && fields[i].offset == input.fields()[i].offset
                                     : fields[i].type == Type::String && !fields[i].nullable;
  }
  if (!fits) throw std::invalid_argument("operator '" + operator_ + "': dead letters have the fields of the input, and two texts");
}

void DeadLetters::add(const std::byte* record, std::string_view error) {
  const std::size_t at = records_.size();
  records_.resize(at + letters_->record_size());
  std::memcpy(records_.data() + at, record, copied_);
  std::memcpy(records_.data() + at + letters_->validity_offset(), record + validity_from_, validity_);
  errors_.emplace_back(error);
}

bool DeadLetters::submit(rel_context* context, std::int32_t port) {
  if (errors_.empty()) return true;
  const std::size_t stride = letters_->record_size();
  const auto& fields = letters_->fields();
  const StringView name = text_in(context, operator_);
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    const StringView error = text_in(context, errors_[i]);
    std::byte* record = records_.data() + i * stride;
    std::memcpy(record + fields[fields.size() - 2].offset, static_cast<const void*>(&error), sizeof error);
    std::memcpy(record + fields[fields.size() - 1].offset, static_cast<const void*>(&name), sizeof name);
  }
  const bool ok = context->emit(port, records_.data(), static_cast<std::int64_t>(errors_.size()));
  records_.clear();
  errors_.clear();
  return ok;
}

}  // namespace rayelastic
