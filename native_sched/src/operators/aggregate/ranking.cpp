#include "operators/aggregate/ranking.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "rayelastic/record/hash.hpp"
#include "record/numbers.hpp"
#include "record/validity.hpp"

namespace rayelastic {

namespace {

struct Header {
  std::uint64_t next = 0;  // number of the next row
  std::uint32_t rows = 0;
  std::uint32_t slots = 0;  // even
  std::uint32_t used = 0;   // bytes of rows, with gaps
  std::uint32_t unused = 0;
};

struct RowHead {
  std::uint64_t number;  // in the order of arrival
  std::int64_t time;     // 0 without an event time
  std::uint32_t bytes;   // of the row
  std::uint32_t unused;
};

constexpr std::size_t kFirstRows = 4;

[[nodiscard]] constexpr std::size_t rounded(std::size_t bytes) noexcept { return (bytes + 7) / 8 * 8; }

// The long texts of a record in the order of its fields: visit(text).
template <typename Visit>
void for_long_texts(const Schema& schema, const std::byte* record, Visit&& visit) {
  if (!schema.has_text()) return;
  for (const Field& field : schema.fields()) {
    if (!is_text(field.type)) continue;
    if (const auto text = load<StringView>(record + field.offset); !text.is_inline()) visit(field, text);
  }
}

// A record as a row has it, or as it came.
struct Source {
  const std::byte* record;
  const std::byte* tail = nullptr;  // the long texts of a row; null: the record has pointers
};

[[nodiscard]] std::size_t text_bytes(const Schema& schema, const std::byte* record) {
  std::size_t bytes = 0;
  for_long_texts(schema, record, [&](const Field&, const StringView& text) { bytes += text.length; });
  return bytes;
}

// The text of a field of a row.
[[nodiscard]] StringView text_of_row(const Schema& schema, const Field& wanted, const std::byte* record) {
  auto text = load<StringView>(record + wanted.offset);
  if (text.is_inline()) return text;
  const auto* tail = reinterpret_cast<const char*>(record + schema.record_size());
  for_long_texts(schema, record, [&](const Field& field, const StringView& each) {
    if (&field < &wanted) tail += each.length;
  });
  text.pointer = tail;
  return text;
}

// The parts of a state in memory that they may write to.
struct Rows {
  explicit Rows(const StringView& kept) noexcept {
    if (kept.length == 0) return;
    memory = reinterpret_cast<std::byte*>(const_cast<char*>(kept.pointer));
    header = reinterpret_cast<Header*>(memory);
    slots = reinterpret_cast<std::uint32_t*>(memory + sizeof(Header));
    rows = memory + sizeof(Header) + std::size_t{header->slots} * sizeof(std::uint32_t);
    capacity = kept.length - static_cast<std::size_t>(rows - memory);
  }
  [[nodiscard]] std::size_t size() const noexcept { return header == nullptr ? 0 : header->rows; }
  [[nodiscard]] RowHead& head(std::uint32_t at) const noexcept { return *reinterpret_cast<RowHead*>(rows + at); }
  [[nodiscard]] std::byte* record(std::uint32_t at) const noexcept { return rows + at + sizeof(RowHead); }

  std::byte* memory = nullptr;
  Header* header = nullptr;
  std::uint32_t* slots = nullptr;
  std::byte* rows = nullptr;
  std::size_t capacity = 0;
};

template <typename Value>
[[nodiscard]] Value value_of(const AggregateStep& step, const std::byte* record, bool of_row) {
  if constexpr (std::is_same_v<Value, StringView>) {
    if (of_row) return text_of_row(*step.input, *step.field, record);
  }
  return load<Value>(record + step.field->offset);
}

template <typename Value>
[[nodiscard]] bool is_missing(const Value& value) noexcept {
  if constexpr (std::is_floating_point_v<Value> || std::is_same_v<Value, Half>) return std::isnan(static_cast<double>(value));
  return false;
}

template <bool kLeast, typename Value>
[[nodiscard]] int compare(const Value& one, const Value& other) noexcept {  // above 0: one is better
  const auto order = [](const auto& a, const auto& b) { return a < b ? -1 : b < a ? 1 : 0; };
  int found = 0;
  if constexpr (std::is_same_v<Value, StringView>) {
    found = order(one.view(), other.view());
  } else if constexpr (std::is_same_v<Value, Half>) {
    found = order(static_cast<double>(one), static_cast<double>(other));
  } else {
    found = order(one, other);
  }
  return kLeast ? -found : found;
}

template <bool kLeast, typename Value>
struct IsBetter {
  [[nodiscard]] bool operator()(std::uint32_t one, std::uint32_t other) const {
    const int order = compare<kLeast>(value_of<Value>(*step, rows->record(one), true), value_of<Value>(*step, rows->record(other), true));
    if (order != 0) return order > 0;
    const RowHead& first = rows->head(one);
    const RowHead& second = rows->head(other);
    return std::pair(first.time, first.number) < std::pair(second.time, second.number);
  }
  const AggregateStep* step;
  const Rows* rows;
};

std::uint32_t checked(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("the best records of a window have 4 GiB or more");
  return static_cast<std::uint32_t>(bytes);
}

// Makes room for another row of so many bytes, without the gaps there were.
void reserve(StringView& kept, TextRooms& rooms, std::size_t most, std::size_t bytes) {
  const Rows before(kept);
  std::size_t live = 0;
  for (std::size_t i = 0; i < before.size(); ++i) live += before.head(before.slots[i]).bytes;
  Header header = before.header == nullptr ? Header{} : *before.header;
  if (header.rows == header.slots)
    header.slots = static_cast<std::uint32_t>((std::min(std::max<std::size_t>(2 * header.rows, kFirstRows), most) + 1) / 2 * 2);
  const bool grows = live + bytes > before.capacity / 2;
  const std::size_t capacity =
      header.rows == 0 ? std::max(before.capacity, bytes) : std::max(before.capacity, grows ? 2 * (live + bytes) : 0);
  std::vector<std::byte> packed(sizeof header + header.slots * sizeof(std::uint32_t) + capacity);
  auto* slots = reinterpret_cast<std::uint32_t*>(packed.data() + sizeof header);
  std::byte* rows = packed.data() + sizeof header + header.slots * sizeof(std::uint32_t);
  header.used = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::uint32_t length = before.head(before.slots[i]).bytes;
    std::memcpy(rows + header.used, before.rows + before.slots[i], length);
    slots[i] = header.used;
    header.used += length;
  }
  std::memcpy(packed.data(), &header, sizeof header);
  rooms.assign(kept, reinterpret_cast<const char*>(packed.data()), checked(packed.size()));
}

// Adds a record if it is among the best.
template <bool kLeast, typename Value>
void offer(const AggregateStep& step, std::byte* state, const Source& from, const Value& value, std::int64_t time) {
  auto& kept = *reinterpret_cast<StringView*>(state);
  const auto most = static_cast<std::size_t>(step.aggregate.second);
  Rows rows(kept);
  const bool full = rows.size() == most;
  if (full) {
    const std::uint32_t worst = rows.slots[0];
    const int order = compare<kLeast>(value, value_of<Value>(step, rows.record(worst), true));
    if (order < 0 || (order == 0 && time >= rows.head(worst).time)) return;
  }
  const Schema& schema = *step.input;
  const std::size_t bytes = rounded(sizeof(RowHead) + schema.record_size() + text_bytes(schema, from.record));
  std::uint32_t at = 0;
  if (full) {
    const std::uint32_t worst = rows.slots[0];
    std::pop_heap(rows.slots, rows.slots + rows.header->rows, IsBetter<kLeast, Value>{&step, &rows});
    --rows.header->rows;
    if (rows.head(worst).bytes == bytes) at = worst + 1;
  }
  if (at == 0) {
    if (rows.header == nullptr || rows.header->rows == rows.header->slots || rows.header->used + bytes > rows.capacity) {
      reserve(kept, *step.rooms, most, bytes);
      rows = Rows(kept);
    }
    at = rows.header->used + 1;
    rows.header->used += static_cast<std::uint32_t>(bytes);
  }
  --at;
  std::byte* const row = rows.rows + at;
  std::memset(row + bytes - 8, 0, 8);
  rows.head(at) = {rows.header->next++, time, static_cast<std::uint32_t>(bytes), 0};
  std::byte* const record = rows.record(at);
  std::memcpy(record, from.record, schema.record_size());
  schema.clear_unused(record, 1);
  std::byte* tail = record + schema.record_size();
  const std::byte* source = from.tail;
  for_long_texts(schema, record, [&](const Field& field, const StringView& text) {
    std::memcpy(tail, source == nullptr ? reinterpret_cast<const std::byte*>(text.pointer) : source, text.length);
    std::memset(record + field.offset + offsetof(StringView, rest), 0, sizeof text.rest);
    tail += text.length;
    if (source != nullptr) source += text.length;
  });
  rows.slots[rows.header->rows++] = at;
  std::push_heap(rows.slots, rows.slots + rows.header->rows, IsBetter<kLeast, Value>{&step, &rows});
}

template <bool kLeast, typename Value>
std::ptrdiff_t update(const AggregateStep& step, const std::byte* records, std::size_t count, void* const* states) {
  return for_present(step, records, count, states, [&step](const std::byte* record, std::byte* state) {
    const auto value = value_of<Value>(step, record, false);
    if (!is_missing(value)) offer<kLeast>(step, state, {record}, value, step.time.has_value() ? step.time->of(record) : 0);
    return true;
  });
}

template <bool kLeast, typename Value>
std::vector<std::uint32_t> ranked(const AggregateStep& step, const Rows& rows) {
  std::vector<std::uint32_t> order(rows.slots, rows.slots + rows.size());
  std::ranges::sort(order, IsBetter<kLeast, Value>{&step, &rows});
  return order;
}

template <bool kLeast, typename Value>
bool merge(const AggregateStep& step, std::byte* into, const std::byte* later) {
  const Rows rows(*reinterpret_cast<const StringView*>(later));
  for (const std::uint32_t at : ranked<kLeast, Value>(step, rows)) {  // so equal ones keep their order
    const std::byte* const record = rows.record(at);
    offer<kLeast>(step, into, {record, record + step.input->record_size()}, value_of<Value>(step, record, true), rows.head(at).time);
  }
  return true;
}

template <typename Visit>
decltype(auto) visit_type(const AggregateStep& step, Visit&& visit) {
  const bool least = step.aggregate.first != 0;
  const auto chosen = [&]<typename Value>(Value) {
    return least ? visit.template operator()<true, Value>() : visit.template operator()<false, Value>();
  };
  if (is_text(step.field->type)) return chosen(StringView());
  if (step.field->type == Type::Decimal128) return chosen(Decimal());
  if (step.field->type == Type::Uuid) return chosen(Uuid());
  constexpr std::byte kZero[8] = {};
  return visit_number(step.field->type, kZero, chosen);
}

// Whether a row at some place, with its texts, has the bytes that it says.
bool is_row(const Schema& schema, const std::byte* row, std::size_t room) {
  if (room < sizeof(RowHead) + schema.record_size()) return false;
  const std::size_t bytes = load<RowHead>(row).bytes;
  const std::byte* const record = row + sizeof(RowHead);
  std::size_t needed = sizeof(RowHead) + schema.record_size();
  bool fits = bytes <= room && bytes % 8 == 0;
  for (const Field& field : schema.fields()) {
    if (!fits || !is_text(field.type)) continue;
    const auto text = load<StringView>(record + field.offset);
    const auto* const begin = text.is_inline() ? text.prefix : reinterpret_cast<const char*>(row + needed);
    if (!text.is_inline()) needed += text.length;
    fits = needed <= bytes;
    if (!fits) continue;
    if (const TextCheck check = check_of_texts(field.type); check) check(StringView(begin, text.length));
  }
  return fits && rounded(needed) == bytes;
}

}  // namespace

Ranking::Ranking(std::shared_ptr<const Schema> input, const Schema& output, std::size_t first) : input_(std::move(input)) {
  const std::vector<Field>& fields = output.fields();
  if (first >= fields.size() || fields[first].type != Type::Int64) throw std::invalid_argument("the place in a ranking has to be an int64");
  place_ = &fields[first];
  for (std::size_t i = first + 1; i < fields.size(); ++i) {
    const Field* const field = input_->find(fields[i].name);
    if (field == nullptr || field->type != fields[i].type || (field->nullable && !fields[i].nullable))
      throw std::invalid_argument("field '" + fields[i].name + "' of a ranking isn't one of its input");
    fields_.emplace_back(field, &fields[i]);
  }
}

void Ranking::choose_code(AggregateStep& step) {
  visit_type(step, [&step]<bool kLeast, typename Value>() {
    step.update = update<kLeast, Value>;
    step.merge = merge<kLeast, Value>;
  });
}

TextCheck Ranking::check(std::shared_ptr<const Schema> input, std::size_t most) {
  return [input = std::move(input), most](const StringView& bytes) {
    const auto require = [](bool whole) {
      if (!whole) throw StateError("exported state has a damaged ranking");
    };
    if (bytes.length == 0) return;
    require(bytes.length >= sizeof(Header));
    std::vector<std::uint64_t> aligned((bytes.length + 7) / 8);
    std::memcpy(aligned.data(), bytes.data(), bytes.length);
    const auto header = load<Header>(reinterpret_cast<const std::byte*>(aligned.data()));
    require(header.slots % 2 == 0 && header.rows > 0 && header.rows <= header.slots && header.rows <= most && header.slots <= most + 1);
    require(sizeof header + std::size_t{header.slots} * sizeof(std::uint32_t) + header.used <= bytes.length);
    const Rows rows(StringView(reinterpret_cast<const char*>(aligned.data()), bytes.length));
    std::vector<std::uint32_t> starts(rows.slots, rows.slots + header.rows);
    std::ranges::sort(starts);
    for (std::size_t i = 0; i < starts.size(); ++i) {  // none reaches into the next one
      const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : header.used;
      require(starts[i] % 8 == 0 && starts[i] < end && is_row(*input, rows.rows + starts[i], end - starts[i]));
    }
  };
}

const std::vector<const std::byte*>& Ranking::in_order(const AggregateStep& step, const std::byte* state) {
  const Rows rows(*reinterpret_cast<const StringView*>(state));
  const auto sorted = visit_type(step, [&]<bool kLeast, typename Value>() { return ranked<kLeast, Value>(step, rows); });
  rows_.clear();
  for (const std::uint32_t at : sorted) rows_.push_back(rows.record(at));
  return rows_;
}

void Ranking::write(const std::byte* row, std::int64_t place, const Schema& output, std::byte* record) const {
  store(record + place_->offset, place);
  set_valid(*place_, output, record);
  for (const auto& [from, to] : fields_) {
    if (!input_->is_valid(row, *from)) continue;
    set_valid(*to, output, record);
    if (is_text(from->type)) {
      store(record + to->offset, text_of_row(*input_, *from, row));
    } else {
      std::memcpy(record + to->offset, row + from->offset, size_of(from->type));
    }
  }
}

std::uint64_t Ranking::layout() const noexcept {
  std::uint64_t digest = hash_of(input_->record_size());
  for (const Field& field : input_->fields())
    digest = hash_of(digest ^ (static_cast<std::uint64_t>(field.type) << 32 | static_cast<std::uint32_t>(field.validity + 1)));
  return digest;
}

}  // namespace rayelastic
