#include "rayelastic/arrow/arrow_reader.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <string_view>

#include "arrow/value_reader.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

namespace {

using Column = ArrowBatch::Column;

bool bit_at(const std::uint8_t* bits, std::size_t index) noexcept { return (bits[index / 8] >> (index % 8) & 1U) != 0; }

template <typename Value>
void read_values(const Column& column, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept {
  const auto* values = static_cast<const Value*>(column.values) + column.offset + first;
  std::byte* target = records + column.target;
  for (std::size_t i = 0; i < count; ++i, target += stride) std::memcpy(target, values + i, sizeof(Value));
}

// The same with validity bits, values of nulls being zero: no branch, since nulls come as they like.
template <typename Value>
void read_nullable(const Column& column, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept {
  const std::size_t begin = column.offset + first;
  const auto* values = static_cast<const Value*>(column.values) + begin;
  const std::uint8_t* validity = column.validity;
  std::byte* target = records + column.target;
  std::byte* bits = records + column.validity_byte;
  const int shift = column.validity_bit % 8;
  for (std::size_t i = 0; i < count; ++i, target += stride, bits += stride) {
    const unsigned present = validity == nullptr ? 1U : validity[(begin + i) / 8] >> ((begin + i) % 8) & 1U;
    const auto value = static_cast<Value>(values[i] & (Value{0} - static_cast<Value>(present)));
    std::memcpy(target, &value, sizeof value);
    *bits |= static_cast<std::byte>(present << shift);
  }
}

void read_bits(const Column& column, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept {
  const auto* bits = static_cast<const std::uint8_t*>(column.values);
  std::byte* target = records + column.target;
  for (std::size_t i = 0; i < count; ++i, target += stride) *target = static_cast<std::byte>(bit_at(bits, column.offset + first + i));
}

// The view of a text of at most 12 bytes, of which 16 may be read.
StringView short_text(const char* bytes, std::uint32_t length) noexcept {
  std::uint64_t low, high;
  std::memcpy(&low, bytes, 8), std::memcpy(&high, bytes + 8, 8);
  low &= length >= 8 ? ~0ULL : (1ULL << (8 * length)) - 1;
  high &= length <= 8 ? 0ULL : (1ULL << (8 * (length - 8))) - 1;
  const std::uint64_t words[2] = {length | low << 32, low >> 32 | high << 32};
  StringView text;
  std::memcpy(static_cast<void*>(&text), words, sizeof text);
  return text;
}

// Offset is int32_t for formats u and z, int64_t for U and Z.
template <typename Offset>
void read_text(const Column& column, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept {
  const auto* offsets = static_cast<const Offset*>(column.values) + column.offset + first;
  const auto* bytes = static_cast<const char*>(column.heaps[0] != nullptr ? column.heaps[0] : "");
  const Offset end = offsets[count];
  std::byte* target = records + column.target;
  for (std::size_t i = 0; i < count; ++i, target += stride) {
    const char* begin = bytes + offsets[i];
    const auto length = static_cast<std::uint32_t>(offsets[i + 1] - offsets[i]);
    const bool fast = length <= StringView::kInlineBytes && end - offsets[i] >= 16;
    const StringView text = fast ? short_text(begin, length) : StringView(begin, length);
    std::memcpy(target, &text, sizeof text);
  }
}

struct ArrowView {  // formats vu and vz: nearly ours, but for the pointer
  std::int32_t length;
  char prefix[4];
  std::int32_t buffer;
  std::int32_t offset;
};
static_assert(sizeof(ArrowView) == 16);

StringView text_of(const ArrowView& view, const void* const* heaps) noexcept {
  if (view.length <= static_cast<std::int32_t>(StringView::kInlineBytes)) {
    char bytes[StringView::kInlineBytes];
    std::memcpy(bytes, view.prefix, sizeof bytes);
    return {bytes, static_cast<std::uint32_t>(view.length)};
  }
  return {static_cast<const char*>(heaps[view.buffer]) + view.offset, static_cast<std::uint32_t>(view.length)};
}

void read_views(const Column& column, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept {
  const auto* views = static_cast<const ArrowView*>(column.values) + column.offset + first;
  for (std::size_t i = 0; i < count; ++i) {
    const bool valid = column.validity == nullptr || bit_at(column.validity, column.offset + first + i);
    const StringView text = valid ? text_of(views[i], column.heaps) : StringView();
    std::memcpy(records + i * stride + column.target, &text, sizeof text);
  }
}

// Sets the validity bit of present values; the values of nulls become zero. For columns whose reader doesn't do it.
void read_validity(const Column& column, std::size_t first, std::size_t count, std::byte* records, std::size_t stride) noexcept {
  const auto mask = static_cast<std::byte>(1U << (column.validity_bit % 8));
  for (std::size_t i = 0; i < count; ++i) {
    std::byte* record = records + i * stride;
    if (column.validity == nullptr || bit_at(column.validity, column.offset + first + i)) {
      record[column.validity_byte] |= mask;
    } else {
      std::memset(record + column.target, 0, column.width);
    }
  }
}

struct TextLayout {
  bool view = false;
  bool large = false;
};

// Whether a column of format `arrow` can fill a field; fills in the layout of texts.
bool accepts(const Field& field, std::string_view arrow, TextLayout& layout) {
  if (field.type == Type::String || field.type == Type::Binary) {
    const bool string = field.type == Type::String;
    layout.view = arrow == (string ? "vu" : "vz");
    layout.large = arrow == (string ? "U" : "Z");
    return layout.view || layout.large || arrow == (string ? "u" : "z");
  }
  if (field.type == Type::Timestamp) return arrow.size() >= 4 && arrow.substr(0, 4) == std::string_view(field.format).substr(0, 4);
  return arrow == field.format;
}

std::string quoted(const std::string& name) { return "field '" + name + "'"; }

// First row that is null, or -1.
std::ptrdiff_t first_null(const std::uint8_t* validity, std::size_t offset, std::size_t rows) noexcept {
  std::size_t row = 0;
  while (row < rows) {
    const std::size_t index = offset + row;
    if (index % 8 == 0 && rows - row >= 8 && validity[index / 8] == 0xff) {
      row += 8;
    } else if (bit_at(validity, index)) {
      ++row;
    } else {
      return static_cast<std::ptrdiff_t>(row);
    }
  }
  return -1;
}

// The bytes of `rows` texts. Refuses offsets that run backwards and texts of 4 GiB.
template <typename Offset>
std::size_t check_offsets(const Field& field, const Column& column, std::size_t rows) {
  if (rows == 0) return 0;
  const auto* offsets = static_cast<const Offset*>(column.values) + column.offset;
  std::uint64_t high = 0;  // a negative length is a huge one
  for (std::size_t i = 0; i < rows; ++i)
    high |= static_cast<std::uint64_t>(static_cast<std::int64_t>(offsets[i + 1]) - static_cast<std::int64_t>(offsets[i]));
  if (offsets[0] < 0 || high > std::numeric_limits<std::uint32_t>::max()) {
    throw ArrowError(quoted(field.name) + " has a text with a negative length or of 4 GiB or more");
  }
  return static_cast<std::size_t>(offsets[rows] - offsets[0]);
}

std::size_t check_views(const Field& field, const Column& column, std::size_t rows, const ArrowArray& array) {
  const std::int64_t heaps = array.n_buffers - 3;  // after validity and views; the last buffer has the heaps' sizes
  const auto* sizes = heaps < 0 ? nullptr : static_cast<const std::int64_t*>(array.buffers[array.n_buffers - 1]);
  const auto* views = static_cast<const ArrowView*>(column.values) + column.offset;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    if (column.validity != nullptr && !bit_at(column.validity, column.offset + i)) continue;
    const ArrowView& view = views[i];
    const bool is_inline = view.length <= static_cast<std::int32_t>(StringView::kInlineBytes);
    if (view.length < 0 ||
        (!is_inline && (view.buffer < 0 || view.buffer >= heaps || view.offset < 0 || sizes[view.buffer] - view.offset < view.length))) {
      throw ArrowError(quoted(field.name) + " has a text that lies outside of its buffers, in row " + std::to_string(i));
    }
    bytes += static_cast<std::size_t>(view.length);
  }
  return bytes;
}

ArrowBatch::Reader reader_of(const Field& field, const TextLayout& layout) {
  if (field.type == Type::Bool) return read_bits;
  if (field.type == Type::String || field.type == Type::Binary) {
    return layout.view ? read_views : (layout.large ? read_text<std::int64_t> : read_text<std::int32_t>);
  }
  switch (size_of(field.type)) {
    case 16:
      return read_values<std::array<std::uint64_t, 2>>;
    case 1:
      return field.nullable ? read_nullable<std::uint8_t> : read_values<std::uint8_t>;
    case 2:
      return field.nullable ? read_nullable<std::uint16_t> : read_values<std::uint16_t>;
    case 4:
      return field.nullable ? read_nullable<std::uint32_t> : read_values<std::uint32_t>;
    default:
      return field.nullable ? read_nullable<std::uint64_t> : read_values<std::uint64_t>;
  }
}

std::int64_t column_named(const ArrowSchema& arrow, const std::string& name, std::size_t likely) {
  const auto matches = [&](std::int64_t i) { return arrow.children[i]->name != nullptr && name == arrow.children[i]->name; };
  if (static_cast<std::int64_t>(likely) < arrow.n_children && matches(static_cast<std::int64_t>(likely)))
    return static_cast<std::int64_t>(likely);
  for (std::int64_t i = 0; i < arrow.n_children; ++i) {
    if (matches(i)) return i;
  }
  throw ArrowError("the batch has no column for " + quoted(name));
}

// What the records of a batch point into.
struct Owned {
  explicit Owned(ArrowArray* given) : array(*given) { given->release = nullptr; }  // moved, as the C Data Interface has it
  ~Owned() { array.release(&array); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;

  ArrowArray array;
  std::deque<EncodedColumn> encoded;  // never moves
};

void release_owned(void* owner) { delete static_cast<Owned*>(owner); }

}  // namespace

ArrowBatch::ArrowBatch(std::shared_ptr<const Schema> schema, ArrowArray* given, const ArrowSchema& arrow, const std::vector<bool>& unread)
    : schema_(std::move(schema)) {
  if (given->release == nullptr) throw ArrowError("the batch was released already");
  auto owned = std::make_unique<Owned>(given);
  const ArrowArray* const array = &owned->array;
  const std::string_view format = arrow.format == nullptr ? "" : arrow.format;
  if (format != "+s" || array->n_children != arrow.n_children || array->length < 0 || array->offset < 0)
    throw ArrowError("not a record batch (Arrow format '" + std::string(format) + "')");
  rows_ = static_cast<std::size_t>(array->length);
  const auto offset = static_cast<std::size_t>(array->offset);
  if (array->null_count != 0 && array->n_buffers > 0 && array->buffers[0] != nullptr &&
      first_null(static_cast<const std::uint8_t*>(array->buffers[0]), offset, rows_) >= 0) {
    throw ArrowError("the batch has rows that are null as a whole");
  }

  std::size_t end = 0;  // of the fields so far
  for (std::size_t i = 0; i < schema_->fields().size(); ++i) {
    const Field& field = schema_->fields()[i];
    if (i < unread.size() && unread[i]) {
      padded_ = true;
      end = field.offset + size_of(field.type);
      continue;
    }
    const std::int64_t index = column_named(arrow, field.name, i);
    padded_ = padded_ || field.offset != end;
    end = field.offset + size_of(field.type);
    const ArrowSchema& type = *arrow.children[index];
    const ArrowArray& values = *array->children[index];
    if (type.dictionary != nullptr)
      throw ArrowError(quoted(field.name) + " is dictionary-encoded; cast the column to its value type first");
    const bool text = field.type == Type::String || field.type == Type::Binary;
    TextLayout layout;
    if (field.form != nullptr) {
      layout.large = true;  // as encode_column gives it
    } else if (!accepts(field, type.format, layout)) {
      throw ArrowError(quoted(field.name) + " has Arrow format '" + type.format + "' in the batch but '" + field.format +
                       "' in the schema; cast the column first");
    }
    if (values.offset < 0 || values.length < 0 || static_cast<std::size_t>(values.length) < offset + rows_ ||
        (field.form == nullptr && values.n_buffers < (text ? 3 : 2))) {
      throw ArrowError(quoted(field.name) + " has fewer values or buffers than the batch needs");
    }

    Column column;
    column.reader = reader_of(field, layout);
    column.offset = static_cast<std::size_t>(values.offset) + offset;
    column.validity = values.null_count == 0 ? nullptr : static_cast<const std::uint8_t*>(values.buffers[0]);
    if (field.form == nullptr) {
      column.values = values.buffers[1];
      column.heaps = text ? values.buffers + 2 : nullptr;
    }
    column.target = field.offset;
    column.width = size_of(field.type);
    column.validity_bit = field.validity;
    if (field.validity >= 0) {
      column.separate_validity = text || field.type == Type::Bool || size_of(field.type) > 8;
      column.validity_byte = schema_->validity_offset() + static_cast<std::size_t>(field.validity) / 8;
    } else if (column.validity != nullptr) {
      const std::ptrdiff_t row = first_null(column.validity, column.offset, rows_);
      if (row >= 0)
        throw ArrowError(quoted(field.name) + " isn't nullable but null in row " + std::to_string(row) +
                         "; declare it as optional or drop such rows");
      column.validity = nullptr;
    }
    if (field.form != nullptr) {
      EncodedColumn& encoded = owned->encoded.emplace_back(encode_column(field, type, values, offset, rows_));
      column.values = text ? static_cast<const void*>(encoded.offsets.data()) : encoded.numbers.data();
      encoded.heap = encoded.bytes.data();
      column.heaps = &encoded.heap;
      if (column.validity != nullptr) column.validity = encoded.validity.data();
      column.offset = 0;
    }
    if (rows_ > 0 && column.values == nullptr) throw ArrowError(quoted(field.name) + " has no values");
    if (text && field.form != nullptr) {
      bytes_ += check_offsets<std::int64_t>(field, column, rows_);
    } else if (text) {
      bytes_ += layout.view ? check_views(field, column, rows_, values)
                            : (layout.large ? check_offsets<std::int64_t>(field, column, rows_)
                                            : check_offsets<std::int32_t>(field, column, rows_));
    }
    columns_.push_back(column);
  }
  bytes_ += rows_ * schema_->record_size();
  chunk_ = Chunk::adopt(nullptr, bytes_, release_owned, owned.get());
  (void)owned.release();
}

void ArrowBatch::read(std::size_t first, std::size_t count, std::byte* records) const noexcept {
  constexpr std::size_t kBlock = 256;  // records that stay in the first-level cache while columns take turns
  const std::size_t stride = schema_->record_size();
  const std::size_t validity = schema_->validity_offset();
  for (; count > 0; first += kBlock, records += kBlock * stride) {
    const std::size_t n = std::min(kBlock, count);
    if (padded_) {
      std::memset(records, 0, n * stride);
    } else if (validity < stride) {
      for (std::size_t i = 0; i < n; ++i) std::memset(records + i * stride + validity, 0, stride - validity);
    }
    for (const Column& column : columns_) {
      column.reader(column, first, n, records, stride);
      if (column.separate_validity) read_validity(column, first, n, records, stride);
    }
    count -= n;
  }
}

}  // namespace rayelastic
