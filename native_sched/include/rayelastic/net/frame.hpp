// What goes over a link, as pure functions over bytes: no socket, no thread, no clock. Architecture section 6, rules D4-D6.
//
// A frame is a 40-byte header, `records` records of `record_bytes` bytes, then `heap_bytes` bytes of text that the records'
// string views refer to. Little endian. On the wire a view of more than 12 bytes carries an offset into the heap where a
// record in memory carries a pointer; a null text field is 16 zero bytes. Text that is too much for one frame is sent ahead in frames
// of its own, so that none is long: what a damaged length costs is bounded, and control frames get through in between.
//
//   0 magic  4 version  5 kind  6 flags  7 detail  8 sequence  16 records  20 record_bytes  24 heap_bytes  28 checksum  32 value
//
// Everything is checked before memory is allocated or a byte is used: whoever decodes gets a fault, never a guess.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/schema.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

inline constexpr std::uint32_t kFrameMagic = 0x464C4552;  // "RELF"
inline constexpr std::uint8_t kFrameVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 40;

enum class FrameKind : std::uint8_t {
  Hello = 1,  // value = schema fingerprint, record_bytes = its record size; first of each side but for heartbeats
  Records,    // has a body, and costs credit
  Mark,       // detail = MarkKind, value = the mark's value
  Credit,     // value = bytes that the receiver has consumed; the first one grants the window
  Heartbeat,
  Goodbye,  // nothing follows; an end of the connection without it is a lost peer
  Text  // heap_bytes of the heap of the next Records, whose own bytes of it come last; value = the bytes of the whole heap; costs credit
};

[[nodiscard]] constexpr bool has_body(FrameKind kind) noexcept { return kind == FrameKind::Records || kind == FrameKind::Text; }

enum class FrameFault : std::uint8_t {
  None,
  Magic,       // not a frame at all
  Version,     // a frame of another version
  Kind,        // unknown kind
  Field,       // a field that this kind doesn't use is set, or one that it uses has no sense
  Length,      // longer than the limit
  RecordSize,  // records of another size than the schema's
  Sequence,    // not the next one
  Checksum,
  View,    // a string view outside the heap, or not canonical
  Schema,  // the peer's Hello names another schema
  Order,   // a frame of a kind that can't come now, or from this side
  Credit,  // grants more back than was sent
};
inline constexpr std::size_t kFrameFaults = 13;

[[nodiscard]] std::string_view to_string(FrameFault fault) noexcept;

struct FrameHeader {
  FrameKind kind = FrameKind::Heartbeat;
  bool checksummed = false;
  std::uint8_t detail = 0;
  std::uint64_t sequence = 0;
  std::uint32_t records = 0;
  std::uint32_t record_bytes = 0;
  std::uint32_t heap_bytes = 0;
  std::uint32_t checksum = 0;
  std::int64_t value = 0;

  [[nodiscard]] std::uint64_t body_bytes() const noexcept { return std::uint64_t{records} * record_bytes + heap_bytes; }
  [[nodiscard]] std::uint64_t frame_bytes() const noexcept { return kFrameHeaderBytes + body_bytes(); }
};

// The most text of a tuple that goes over a link, and the most that links take in for one: what fits in a queue fits here too.
inline constexpr std::size_t kMostText = 512U << 20;

// What a receiver accepts next.
struct FrameLimits {
  std::size_t max_frame_bytes = 8U << 20;
  std::size_t most_text = kMostText;  // of the heap of one Records frame, with what was sent ahead
  std::uint64_t sequence = 0;
  std::uint32_t record_bytes = 0;  // of Records frames
};

using HeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

[[nodiscard]] HeaderBytes encode_header(const FrameHeader& header) noexcept;

// Reads and checks a header, and the checksum of a frame without a body. On a fault `header` holds what was seen, for the failure's text.
[[nodiscard]] FrameFault decode_header(const HeaderBytes& bytes, const FrameLimits& limits, FrameHeader& header) noexcept;

// CRC32C over the header with checksum 0, the records and the heap.
[[nodiscard]] std::uint32_t checksum_of(const FrameHeader& header, std::span<const std::byte> records, std::span<const char> heap) noexcept;

// A hash of names, types, nullability and formats in order: equal on both sides of a link or the link is refused.
[[nodiscard]] std::uint64_t fingerprint(const Schema& schema) noexcept;

// Checks the text and bool fields of `count` records as they came from the wire and turns heap offsets into pointers into `heap`.
// On a fault `bad_record` is the index of the record; nothing of the frame may be used.
[[nodiscard]] FrameFault link_views(const Schema& schema, std::byte* records, std::size_t count, std::span<const char> heap,
                                    std::size_t& bad_record) noexcept;

// Gathers records and the text that they use into the body of one frame. Not thread-safe.
class FrameBody {
 public:
  enum class Append : std::uint8_t { Taken, Full, TooLarge };

  FrameBody(std::shared_ptr<const Schema> schema, std::size_t target_bytes, std::size_t most_text);

  // Takes as many of the records as fit into the target size, at least one if the body is empty. Returns how many were taken;
  // `outcome` says why it stopped: TooLarge = the text of the next record alone is over most_text. Views of one call that follow
  // each other with the same address and length share their text.
  std::size_t append(const std::byte* records, std::size_t count, Append& outcome);
  void clear() noexcept;
  // From now on it is full at so many bytes.
  void aim(std::size_t target_bytes) noexcept { target_bytes_ = target_bytes; }

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t frame_bytes() const noexcept { return kFrameHeaderBytes + records_.size() + heap_.size(); }
  [[nodiscard]] std::size_t free_bytes() const noexcept { return target_bytes_ - std::min(frame_bytes(), target_bytes_); }
  [[nodiscard]] std::span<const std::byte> records() const noexcept { return records_; }
  [[nodiscard]] std::span<const char> heap() const noexcept { return heap_; }

 private:
  [[nodiscard]] std::size_t text_bytes(const std::byte* record) const noexcept;  // that the record would add to the heap
  [[nodiscard]] bool is_seen(std::size_t text_field, const StringView& view) const noexcept;
  void take(const std::byte* record);

  std::shared_ptr<const Schema> schema_;
  std::size_t stride_;
  std::size_t target_bytes_;
  std::size_t most_text_;
  std::vector<const Field*> text_fields_;
  std::vector<StringView> seen_;             // per text field, the last long view of this call
  std::vector<std::uint64_t> seen_offsets_;  // where its text lies in heap_
  std::vector<std::byte> records_;
  std::vector<char> heap_;
  std::size_t count_ = 0;
};

}  // namespace rayelastic
