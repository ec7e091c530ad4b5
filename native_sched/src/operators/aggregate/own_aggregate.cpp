#include "rayelastic/operators/aggregate/own_aggregate.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "rayelastic/record/hash.hpp"
#include "record/numbers.hpp"
#include "record/validity.hpp"

namespace rayelastic {

OwnAggregate::OwnAggregate(OwnOptions options) : options_(std::move(options)) {
  const auto& [methods, input, state, result, initial, why_add, why_state, owner] = options_;
  if (initial.size() != state->record_size()) throw std::invalid_argument("the first state is no record of the state's schema");
  for (const Field& field : state->fields()) {
    if (field.type != Type::String && field.type != Type::Binary) continue;
    if (load<StringView>(initial.data() + field.offset).length > StringView::kInlineBytes)
      throw std::invalid_argument("a text of the first state is too long");
    text_offsets_.push_back(field.offset);
    text_checks_.push_back(check_of_texts(field.type));
  }
  made_.resize(result->record_size() / sizeof(std::uint64_t));
  if (methods.result != nullptr) return;
  for (const Field& field : result->fields()) {
    shown_.push_back(state->find(field.name));
    if (shown_.back() == nullptr || shown_.back()->type != field.type || (shown_.back()->nullable && !field.nullable))
      throw std::invalid_argument("the state has no field '" + field.name + "' of this type");
  }
}

void OwnAggregate::check_output(std::span<const Field> fields) const {
  const std::vector<Field>& given = options_.result->fields();
  bool fits = fields.size() == given.size();
  for (std::size_t i = 0; fits && i < given.size(); ++i)
    fits = fields[i].type == given[i].type && (fields[i].nullable || !given[i].nullable);
  if (!fits) throw std::invalid_argument("the output schema can't hold the result of the aggregate");
}

std::uint64_t OwnAggregate::layout() const noexcept {
  std::uint64_t digest = hash_of(options_.initial.size());
  for (const Field& field : options_.state->fields())
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(field.type) << 32 | static_cast<std::uint32_t>(field.validity + 1)));
  return digest;
}

std::ptrdiff_t OwnAggregate::add(const std::byte* records, std::size_t count, void* const* states) {
  if (!adds()) throw std::logic_error("an aggregate that is only read takes no records");
  texts_.clear();
  const auto n = static_cast<std::int64_t>(count);
  const std::int64_t given = options_.methods.add(records, n, nullptr, n, const_cast<void**>(states), this);
  if (given >= 0 && problem_.empty()) return -1;
  const std::ptrdiff_t index = given < 0 ? -1 - given : 0;
  const Explain why = [this, state = static_cast<const std::byte*>(states[index])](const std::byte* record) {
    return options_.why_add(record, state);
  };
  (void)failed("add", why, records + static_cast<std::size_t>(index) * options_.input->record_size());
  return index;
}

bool OwnAggregate::merge(std::byte* into, const std::byte* later) {
  texts_.clear();
  void* states[] = {into};
  const std::int64_t given = options_.methods.merge(later, 1, nullptr, 1, static_cast<void*>(states), this);
  return (given >= 0 && problem_.empty()) || failed("merge", {}, later);
}

bool OwnAggregate::write(const std::byte* state, const Schema& output, std::span<const Field> fields, std::byte* record) {
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    std::memcpy(record + fields[i].offset, state + shown_[i]->offset, size_of(fields[i].type));
    if (options_.state->is_valid(state, *shown_[i])) set_valid(fields[i], output, record);
  }
  if (options_.methods.result == nullptr) return true;
  std::memset(made_.data(), 0, made_.size() * sizeof(std::uint64_t));
  const std::int64_t given = options_.methods.result(state, 1, made_.data(), 1, nullptr, this);
  if (given != 1 || !problem_.empty()) return failed("result", options_.why_state, state);
  const auto* made = reinterpret_cast<const std::byte*>(made_.data());
  const std::vector<Field>& results = options_.result->fields();
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::memcpy(record + fields[i].offset, made + results[i].offset, size_of(results[i].type));
    if (options_.result->is_valid(made, results[i])) set_valid(fields[i], output, record);
  }
  return true;
}

void* OwnAggregate::allocate(std::size_t bytes) { return texts_.emplace_back(std::make_unique<char[]>(bytes)).get(); }

bool OwnAggregate::keep_text(void* field, const char* text, std::uint32_t bytes) {
  rooms_->assign(*static_cast<StringView*>(field), text, bytes);
  return true;
}

bool OwnAggregate::failed(std::string_view method, const Explain& why, const std::byte* record) {
  if (problem_.empty())
    problem_ = why ? why(record) : std::string(method) + ": it raised, or went beyond 64 bits; lane='python' needs no merge";
  return false;
}

}  // namespace rayelastic
