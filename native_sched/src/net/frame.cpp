#include "rayelastic/net/frame.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "rayelastic/assert.hpp"
#include "rayelastic/net/frame_checksum.hpp"

namespace rayelastic {

static_assert(std::endian::native == std::endian::little, "frames and records are little endian");

namespace {

constexpr std::uint8_t kChecksummed = 1;  // the only flag

template <typename T>
void put(HeaderBytes& bytes, std::size_t at, T value) noexcept {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

template <typename T>
T get(const HeaderBytes& bytes, std::size_t at) noexcept {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

// Fields that a kind doesn't use are zero, so that nothing can hide in them and every frame has one spelling.
bool fields_fit(const FrameHeader& header) noexcept {
  const bool no_body = header.records == 0 && header.heap_bytes == 0;
  const bool plain = no_body && header.record_bytes == 0 && header.detail == 0;
  switch (header.kind) {
    case FrameKind::Hello:
      return no_body && header.detail == 0;
    case FrameKind::Records:
      return header.records > 0 && header.detail == 0 && header.value == 0;
    case FrameKind::Mark:
      return no_body && header.record_bytes == 0 && header.detail <= static_cast<std::uint8_t>(MarkKind::Final);
    case FrameKind::Text:
      return header.records == 0 && header.record_bytes == 0 && header.detail == 0 && header.heap_bytes > 0 &&
             header.value > std::int64_t{header.heap_bytes};
    case FrameKind::Credit:
      return plain && header.value > 0;
    case FrameKind::Heartbeat:
    case FrameKind::Goodbye:
      return plain && header.value == 0;
  }
  return false;
}

bool is_text(const Field& field) noexcept { return field.type == Type::String || field.type == Type::Binary; }

bool unused_bytes_are_zero(const StringView& view) noexcept {
  char text[StringView::kInlineBytes];
  std::memcpy(text, view.prefix, 4), std::memcpy(text + 4, view.rest, 8);
  for (std::size_t i = view.length; i < sizeof(text); ++i) {
    if (text[i] != 0) return false;
  }
  return true;
}

// One text field as it came; false: it isn't one.
bool link_view(std::byte* place, std::span<const char> heap) noexcept {
  StringView view;
  std::memcpy(&view, place, sizeof(view));
  if (view.is_inline()) return unused_bytes_are_zero(view);
  std::uint64_t offset;
  std::memcpy(&offset, view.rest, sizeof(offset));
  if (offset > heap.size() || view.length > heap.size() - offset) return false;
  if (std::memcmp(view.prefix, heap.data() + offset, sizeof(view.prefix)) != 0) return false;
  RE_CHECK(offset + view.length <= heap.size());
  view.pointer = heap.data() + offset;
  std::memcpy(place, &view, sizeof(view));
  return true;
}

}  // namespace

std::string_view to_string(FrameFault fault) noexcept {
  switch (fault) {
    case FrameFault::None:
      return "nothing wrong";
    case FrameFault::Magic:
      return "it isn't a frame";
    case FrameFault::Version:
      return "it has another version";
    case FrameFault::Kind:
      return "its kind is unknown";
    case FrameFault::Field:
      return "a field of its header has no sense";
    case FrameFault::Length:
      return "it is longer than allowed";
    case FrameFault::RecordSize:
      return "its records have another size than the schema's";
    case FrameFault::Sequence:
      return "it isn't the next one";
    case FrameFault::Checksum:
      return "its checksum is wrong";
    case FrameFault::View:
      return "a text or bool of a record has no sense";
    case FrameFault::Schema:
      return "the two sides have different schemas";
    case FrameFault::Order:
      return "a frame of its kind can't come now";
    case FrameFault::Credit:
      return "it grants back more than was sent";
  }
  return "unknown";
}

HeaderBytes encode_header(const FrameHeader& header) noexcept {
  HeaderBytes bytes{};
  put(bytes, 0, kFrameMagic);
  put(bytes, 4, kFrameVersion);
  put(bytes, 5, static_cast<std::uint8_t>(header.kind));
  put(bytes, 6, static_cast<std::uint8_t>(header.checksummed ? kChecksummed : 0));
  put(bytes, 7, header.detail);
  put(bytes, 8, header.sequence);
  put(bytes, 16, header.records);
  put(bytes, 20, header.record_bytes);
  put(bytes, 24, header.heap_bytes);
  put(bytes, 28, header.checksum);
  put(bytes, 32, header.value);
  return bytes;
}

FrameFault decode_header(const HeaderBytes& bytes, const FrameLimits& limits, FrameHeader& header) noexcept {
  const auto kind = get<std::uint8_t>(bytes, 5);
  const auto flags = get<std::uint8_t>(bytes, 6);
  header.kind = static_cast<FrameKind>(kind);
  header.checksummed = (flags & kChecksummed) != 0;
  header.detail = get<std::uint8_t>(bytes, 7);
  header.sequence = get<std::uint64_t>(bytes, 8);
  header.records = get<std::uint32_t>(bytes, 16);
  header.record_bytes = get<std::uint32_t>(bytes, 20);
  header.heap_bytes = get<std::uint32_t>(bytes, 24);
  header.checksum = get<std::uint32_t>(bytes, 28);
  header.value = get<std::int64_t>(bytes, 32);

  if (get<std::uint32_t>(bytes, 0) != kFrameMagic) return FrameFault::Magic;
  if (get<std::uint8_t>(bytes, 4) != kFrameVersion) return FrameFault::Version;
  if (kind < static_cast<std::uint8_t>(FrameKind::Hello) || kind > static_cast<std::uint8_t>(FrameKind::Text)) return FrameFault::Kind;
  if ((flags & ~kChecksummed) != 0 || (!header.checksummed && header.checksum != 0)) return FrameFault::Field;
  if (!fields_fit(header)) return FrameFault::Field;
  if (header.kind == FrameKind::Records && header.record_bytes != limits.record_bytes) return FrameFault::RecordSize;
  // 32-bit factors: the 64-bit product can't overflow, nor can the sum with two more 32-bit terms.
  if (has_body(header.kind) && header.frame_bytes() > limits.max_frame_bytes) return FrameFault::Length;
  if (header.kind == FrameKind::Text && header.value > static_cast<std::int64_t>(limits.most_text)) return FrameFault::Length;
  if (header.sequence != limits.sequence) return FrameFault::Sequence;
  if (!has_body(header.kind) && header.checksummed && header.checksum != checksum_of(header, {}, {})) return FrameFault::Checksum;
  return FrameFault::None;
}

std::uint32_t checksum_of(const FrameHeader& header, std::span<const std::byte> records, std::span<const char> heap) noexcept {
  FrameHeader unsigned_header = header;
  unsigned_header.checksum = 0;
  const HeaderBytes bytes = encode_header(unsigned_header);
  const std::uint32_t crc = crc32c(crc32c(0, bytes.data(), bytes.size()), records.data(), records.size());
  return crc32c(crc, heap.data(), heap.size());
}

std::uint64_t fingerprint(const Schema& schema) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  const auto mix = [&hash](const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3;
  };
  const auto mix_text = [&mix](const std::string& text) {
    const std::uint64_t length = text.size();
    mix(&length, sizeof(length));
    mix(text.data(), text.size());
  };
  for (const Field& field : schema.fields()) {
    mix_text(field.name);
    mix_text(field.format);
    const unsigned char kind[2] = {static_cast<unsigned char>(field.type), static_cast<unsigned char>(field.nullable)};
    mix(kind, sizeof(kind));
  }
  return hash;
}

FrameFault link_views(const Schema& schema, std::byte* records, std::size_t count, std::span<const char> heap,
                      std::size_t& bad_record) noexcept {
  const std::size_t stride = schema.record_size();
  for (const Field& field : schema.fields()) {
    if (!is_text(field) && field.type != Type::Bool) continue;
    for (std::size_t i = 0; i < count; ++i) {
      std::byte* record = records + i * stride;
      std::byte* place = record + field.offset;
      if (!schema.is_valid(record, field)) {
        std::memset(place, 0, size_of(field.type));  // whatever lies under a null is never looked at
      } else if (is_text(field) ? !link_view(place, heap) : std::to_integer<unsigned>(*place) > 1) {
        bad_record = i;
        return FrameFault::View;
      }
    }
  }
  return FrameFault::None;
}

FrameBody::FrameBody(std::shared_ptr<const Schema> schema, std::size_t target_bytes, std::size_t most_text)
    : schema_(std::move(schema)), stride_(schema_->record_size()), target_bytes_(target_bytes), most_text_(most_text) {
  for (const Field& field : schema_->fields()) {
    if (is_text(field)) text_fields_.push_back(&field);
  }
  seen_.resize(text_fields_.size());
  seen_offsets_.resize(text_fields_.size());
  records_.reserve(target_bytes_);
}

std::size_t FrameBody::append(const std::byte* records, std::size_t count, Append& outcome) {
  outcome = Append::Taken;
  // Addresses mean the same text only within one call: a chunk may be freed and its memory used again afterwards.
  seen_.assign(seen_.size(), StringView());
  RE_CHECK(seen_offsets_.size() == text_fields_.size() && seen_.size() == text_fields_.size());
  if (text_fields_.empty() && frame_bytes() + stride_ <= target_bytes_) {
    const std::size_t taken = std::min(count, (target_bytes_ - frame_bytes()) / stride_);
    records_.insert(records_.end(), records, records + taken * stride_);
    schema_->clear_unused(records_.data() + count_ * stride_, taken);
    count_ += taken;
    RE_CHECK(records_.size() == count_ * stride_);
    if (taken < count) outcome = Append::Full;
    return taken;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* record = records + i * stride_;
    const std::size_t text = text_bytes(record);
    if (empty() ? text > most_text_ : frame_bytes() + stride_ + text > target_bytes_) {
      outcome = empty() ? Append::TooLarge : Append::Full;
      return i;
    }
    take(record);
  }
  return count;
}

void FrameBody::clear() noexcept {
  // One large record doesn't leave its memory behind for ever.
  if (heap_.capacity() > 4 * target_bytes_) heap_ = {};
  records_.clear();
  heap_.clear();
  seen_.assign(seen_.size(), StringView());
  count_ = 0;
}

bool FrameBody::is_seen(std::size_t text_field, const StringView& view) const noexcept {
  return seen_[text_field].length == view.length && seen_[text_field].pointer == view.pointer;
}

std::size_t FrameBody::text_bytes(const std::byte* record) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < text_fields_.size(); ++i) {
    StringView view;
    std::memcpy(&view, record + text_fields_[i]->offset, sizeof(view));
    if (view.is_inline() || !schema_->is_valid(record, *text_fields_[i]) || is_seen(i, view)) continue;
    bytes += view.length;
  }
  return bytes;
}

void FrameBody::take(const std::byte* record) {
  const std::size_t start = records_.size();
  records_.insert(records_.end(), record, record + stride_);
  schema_->clear_unused(records_.data() + start, 1);  // no address leaves the process
  for (std::size_t i = 0; i < text_fields_.size(); ++i) {
    std::byte* place = records_.data() + start + text_fields_[i]->offset;
    StringView view;
    std::memcpy(&view, place, sizeof(view));
    if (view.is_inline()) continue;
    if (!is_seen(i, view)) {
      seen_[i] = view;
      seen_offsets_[i] = heap_.size();
      heap_.insert(heap_.end(), view.pointer, view.pointer + view.length);
    }
    RE_CHECK(seen_offsets_[i] + view.length <= heap_.size());  // as link_view() takes it
    std::memcpy(place + offsetof(StringView, rest), &seen_offsets_[i], sizeof(std::uint64_t));
  }
  ++count_;
  RE_CHECK(records_.size() == count_ * stride_);
}

}  // namespace rayelastic
