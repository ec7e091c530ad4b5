#include "rayelastic/arrow/arrow_writer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "arrow/value_writer.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

namespace {

// Bytes that grow by doubling and aren't initialised.
class Buffer {
 public:
  Buffer() noexcept = default;
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(data_, other.data_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Buffer() { std::free(data_); }

  char* reserve(std::size_t bytes) {
    if (bytes > capacity_) {
      const std::size_t capacity = std::max({bytes, capacity_ * 2, std::size_t{1024}});
      void* data = std::realloc(data_, capacity);
      if (data == nullptr) throw std::bad_alloc();
      data_ = static_cast<char*>(data);
      capacity_ = capacity;
    }
    return data_;
  }
  [[nodiscard]] char* data() const noexcept { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t capacity_ = 0;
};

bool is_text(const Field& field) noexcept { return field.type == Type::String || field.type == Type::Binary; }
bool is_large(const Field& field) noexcept { return field.format == "U" || field.format == "Z"; }

std::string format_of(const Field& field) {
  if (!is_text(field) || is_large(field)) return field.format;
  return field.type == Type::String ? "u" : "z";
}

StringView load_text(const std::byte* place) noexcept {
  StringView text;
  std::memcpy(static_cast<void*>(&text), place, sizeof text);
  return text;
}

template <typename Value>
void gather(const std::byte* source, std::size_t stride, std::size_t count, char* target) noexcept {
  for (std::size_t i = 0; i < count; ++i, source += stride) std::memcpy(target + i * sizeof(Value), source, sizeof(Value));
}

// Writes bit_at(i) for i in [0, count) as bits [first, first + count), leaving those before alone.
template <typename BitAt>
void put_bits(char* bits, std::size_t first, std::size_t count, BitAt&& bit_at) noexcept {
  auto* byte = reinterpret_cast<unsigned char*>(bits) + first / 8;
  std::size_t shift = first % 8;
  unsigned pending = shift == 0 ? 0U : *byte & ((1U << shift) - 1);
  for (std::size_t i = 0; i < count; ++i) {
    pending |= bit_at(i) << shift;
    if (++shift == 8) {
      *byte++ = static_cast<unsigned char>(pending);
      pending = 0;
      shift = 0;
    }
  }
  if (shift != 0) *byte = static_cast<unsigned char>(pending);
}

}  // namespace

struct ArrowWriter::Column {
  explicit Column(const Field& described) : field(&described) {}

  const Field* field;
  Buffer validity;
  Buffer values;  // or offsets
  Buffer heap;    // bytes of texts
  std::size_t heap_bytes = 0;
  std::int64_t null_count = 0;

  // How many of the texts fit, with 32-bit offsets.
  [[nodiscard]] std::size_t fitting(const std::byte* records, std::size_t stride, std::size_t count, std::size_t most) const noexcept {
    std::size_t end = heap_bytes + bytes_of_texts(records, stride, count);
    while (end > most && count > 0) end -= length_at(records, stride, --count);
    return count;
  }

  [[nodiscard]] std::size_t length_at(const std::byte* records, std::size_t stride, std::size_t i) const noexcept {
    std::uint32_t length;
    std::memcpy(&length, records + i * stride + field->offset, sizeof length);
    return length;
  }

  [[nodiscard]] std::size_t bytes_of_texts(const std::byte* records, std::size_t stride, std::size_t count) const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) bytes += length_at(records, stride, i);
    return bytes;
  }

  void append(const Schema& schema, const std::byte* records, std::size_t first, std::size_t count) {
    const std::size_t stride = schema.record_size();
    const std::byte* source = records + field->offset;
    if (field->validity >= 0) append_validity(schema, records, first, count);
    switch (field->type) {
      case Type::Bool: {
        put_bits(values.reserve((first + count + 7) / 8), first, count,
                 [&](std::size_t i) { return source[i * stride] != std::byte{0} ? 1U : 0U; });
        return;
      }
      case Type::String:
      case Type::Binary:
        return is_large(*field) ? append_text<std::int64_t>(schema, records, first, count)
                                : append_text<std::int32_t>(schema, records, first, count);
      default:
        break;
    }
    const std::size_t width = size_of(field->type);
    char* target = values.reserve((first + count) * width) + first * width;
    switch (width) {
      case 1:
        return gather<std::uint8_t>(source, stride, count, target);
      case 2:
        return gather<std::uint16_t>(source, stride, count, target);
      case 4:
        return gather<std::uint32_t>(source, stride, count, target);
      case 16:
        return gather<std::array<std::uint64_t, 2>>(source, stride, count, target);
      default:
        return gather<std::uint64_t>(source, stride, count, target);
    }
  }

  void append_validity(const Schema& schema, const std::byte* records, std::size_t first, std::size_t count) {
    const auto bit = static_cast<std::size_t>(field->validity);
    const std::byte* source = records + schema.validity_offset() + bit / 8;
    const std::size_t stride = schema.record_size();
    std::size_t present = 0;
    put_bits(validity.reserve((first + count + 7) / 8), first, count, [&](std::size_t i) {
      const unsigned valid = static_cast<unsigned>(source[i * stride]) >> (bit % 8) & 1U;
      present += valid;
      return valid;
    });
    null_count += static_cast<std::int64_t>(count - present);
  }

  template <typename Offset>
  void append_text(const Schema& schema, const std::byte* records, std::size_t first, std::size_t count) {
    constexpr std::size_t kSlack = 16;  // short texts are copied as 12 bytes, whatever their length
    const std::size_t stride = schema.record_size();
    auto* offsets = reinterpret_cast<Offset*>(values.reserve((first + count + 1) * sizeof(Offset))) + first;
    char* const begin = heap.reserve(heap_bytes + bytes_of_texts(records, stride, count) + kSlack);
    char* target = begin + heap_bytes;
    const std::byte* source = records + field->offset;
    const Field described = {"", field->type,   field->nullable,
                             "", field->offset, field->validity};  // local: `target` may alias anything else
    for (std::size_t i = 0; i < count; ++i, source += stride) {
      offsets[i] = static_cast<Offset>(target - begin);
      if (described.validity >= 0 && !schema.is_valid(records + i * stride, described)) continue;
      std::uint32_t length;
      std::memcpy(&length, source, sizeof length);
      if (length <= StringView::kInlineBytes) {
        std::memcpy(target, source + offsetof(StringView, prefix), StringView::kInlineBytes);
      } else {
        std::memcpy(target, load_text(source).pointer, length);
      }
      target += length;
    }
    heap_bytes = static_cast<std::size_t>(target - begin);
    offsets[count] = static_cast<Offset>(heap_bytes);
  }
};

namespace {

// What an exported array owns; children own their own part, so that each may outlive the others.
struct OwnedColumn {
  Buffer buffers[3];
  const void* pointers[3] = {};
};
struct OwnedBatch {
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  const void* validity = nullptr;
};

template <typename Struct>
void release_children(Struct* parent) {
  for (std::int64_t i = 0; i < parent->n_children; ++i) {
    Struct* child = parent->children[i];
    if (child->release != nullptr) child->release(child);
  }
}

void release_column(ArrowArray* array) {
  delete static_cast<OwnedColumn*>(array->private_data);
  array->release = nullptr;
}

void release_batch(ArrowArray* array) {
  release_children(array);
  delete static_cast<OwnedBatch*>(array->private_data);
  array->release = nullptr;
}

}  // namespace

void export_schema(const Schema& schema, ArrowSchema* out) {
  export_type("+s", "", 0, schema.fields().size(), out);
  for (std::size_t i = 0; i < schema.fields().size(); ++i) {
    const Field& field = schema.fields()[i];
    if (field.form != nullptr) {
      export_form(*field.form, field.name, field.nullable, out->children[i]);
    } else {
      export_type(format_of(field), field.name, field.nullable ? ARROW_FLAG_NULLABLE : 0, 0, out->children[i]);
    }
  }
}

ArrowWriter::ArrowWriter(std::shared_ptr<const Schema> schema, std::size_t expected_rows, std::size_t most_text_bytes)
    : schema_(std::move(schema)), expected_rows_(expected_rows), most_text_bytes_(most_text_bytes) {
  for (const Field& field : schema_->fields()) columns_.emplace_back(field);
}

ArrowWriter::~ArrowWriter() = default;

std::size_t ArrowWriter::append(const std::byte* records, std::size_t count) {
  constexpr std::size_t kBlock = 256;  // records that stay in the first-level cache while columns take turns
  const std::size_t stride = schema_->record_size();
  if (rows_ == 0) {
    for (Column& column : columns_)
      (void)column.values.reserve(std::max(expected_rows_, count) * (is_text(*column.field) ? 4 : size_of(column.field->type)));
  }
  for (std::size_t done = 0; done < count;) {
    const std::byte* begin = records + done * stride;
    const std::size_t block = std::min(kBlock, count - done);
    std::size_t n = block;
    for (const Column& column : columns_) {
      if (is_text(*column.field) && !is_large(*column.field)) n = column.fitting(begin, stride, n, most_text_bytes_);
    }
    for (Column& column : columns_) column.append(*schema_, begin, rows_, n);
    rows_ += n;
    done += n;
    if (n < block) return done;
  }
  return count;
}

void ArrowWriter::take(ArrowArray* out) {
  auto batch = std::make_unique<OwnedBatch>();
  batch->children.resize(columns_.size());
  std::vector<std::unique_ptr<OwnedColumn>> parts;
  for (Column& column : columns_) {
    if (rows_ == 0 && is_text(*column.field)) std::memset(column.values.reserve(sizeof(std::int64_t)), 0, sizeof(std::int64_t));
    parts.push_back(std::make_unique<OwnedColumn>());
    batch->pointers.push_back(&batch->children[parts.size() - 1]);
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    if (column.field->form == nullptr) continue;
    const GatheredColumn gathered{.rows = rows_,
                                  .validity = column.null_count == 0 ? nullptr : reinterpret_cast<std::uint8_t*>(column.validity.data()),
                                  .values = reinterpret_cast<const std::int32_t*>(column.values.data()),
                                  .heap = column.heap.data()};
    try {
      export_column(*column.field, gathered, &batch->children[i]);
    } catch (...) {
      for (std::size_t k = 0; k < i; ++k) {
        if (batch->children[k].release != nullptr) batch->children[k].release(&batch->children[k]);
      }
      throw;
    }
    column.heap_bytes = 0;
    column.null_count = 0;
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {  // nothing throws from here on
    Column& column = columns_[i];
    if (column.field->form != nullptr) continue;
    OwnedColumn& part = *parts[i];
    part.buffers[0] = std::move(column.validity);
    part.buffers[1] = std::move(column.values);
    part.buffers[2] = std::move(column.heap);
    for (int k = 0; k < 3; ++k) part.pointers[k] = part.buffers[k].data();
    ArrowArray& array = batch->children[i];
    array = {};
    array.length = static_cast<std::int64_t>(rows_);
    array.null_count = column.null_count;
    array.n_buffers = is_text(*column.field) ? 3 : 2;
    array.buffers = part.pointers;
    array.release = release_column;
    array.private_data = parts[i].release();
    column.heap_bytes = 0;
    column.null_count = 0;
  }
  *out = {};
  out->length = static_cast<std::int64_t>(rows_);
  out->n_buffers = 1;
  out->buffers = &batch->validity;
  out->n_children = static_cast<std::int64_t>(batch->children.size());
  out->children = batch->pointers.data();
  out->release = release_batch;
  out->private_data = batch.release();
  rows_ = 0;
}

}  // namespace rayelastic
