#include "operators/aggregate/value_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "rayelastic/record/hash.hpp"

namespace rayelastic::value_set {

namespace {

struct Header {
  std::uint32_t count = 0;
  std::uint32_t buckets = 0;
  std::uint32_t used = 0;
  std::uint32_t unused = 0;
};

constexpr std::uint32_t kFirstBuckets = 8;
constexpr std::uint32_t kFirstEntries = 64;  // bytes

Header header_of(const StringView& set) noexcept {
  Header header;
  if (set.length > 0) std::memcpy(&header, set.pointer, sizeof header);
  return header;
}

// The parts of a set in memory that it may write to.
struct Parts {
  explicit Parts(char* memory) noexcept
      : header(reinterpret_cast<Header*>(memory)),
        buckets(reinterpret_cast<std::uint32_t*>(memory + sizeof(Header))),
        entries(memory + sizeof(Header) + std::size_t{header->buckets} * 4) {}

  [[nodiscard]] StringView entry(std::uint32_t offset) const noexcept {
    std::uint32_t length;
    std::memcpy(&length, entries + offset, 4);
    return {entries + offset + 4, length};
  }
  // The bucket of a value, or the empty one where it belongs.
  [[nodiscard]] std::uint32_t& bucket(const StringView& value) const noexcept {
    const std::uint32_t mask = header->buckets - 1;
    auto index = static_cast<std::uint32_t>(hash_of(value)) & mask;
    while (buckets[index] != 0 && !(entry(buckets[index] - 1) == value)) index = (index + 1) & mask;
    return buckets[index];
  }

  Header* header;
  std::uint32_t* buckets;
  char* entries;
};

std::uint32_t checked(std::uint64_t bytes) {
  if (bytes > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("a set of distinct values has 4 GiB or more");
  return static_cast<std::uint32_t>(bytes);
}

// Makes the set have `buckets` buckets, at least as many as before, and room for `bytes` bytes of entries. Unused ones are zero: they are
// exported with the others.
void reserve(StringView& set, TextRooms& rooms, std::uint32_t buckets, std::uint64_t bytes) {
  const Header before = header_of(set);
  const std::uint64_t start = sizeof(Header) + std::uint64_t{buckets} * 4;
  char* memory = rooms.resize(set, checked(start + bytes));
  if (before.buckets != buckets) std::memmove(memory + start, memory + sizeof(Header) + std::size_t{before.buckets} * 4, before.used);
  std::memset(memory + start + before.used, 0, bytes - before.used);
  if (before.buckets == buckets) return;
  Header after = before;
  after.buckets = buckets;
  std::memcpy(memory, &after, sizeof after);
  const Parts parts(memory);
  std::fill_n(parts.buckets, buckets, 0U);
  for (std::uint32_t at = 0; at < after.used;) {
    const StringView value = parts.entry(at);
    parts.bucket(value) = at + 1;
    at += 4 + (value.length + 3) / 4 * 4;
  }
}

}  // namespace

std::uint32_t size(const StringView& set) noexcept { return header_of(set).count; }

bool insert(StringView& set, TextRooms& rooms, const StringView& value) {
  if (set.length == 0) {
    rooms.resize(set, sizeof(Header) + kFirstBuckets * 4 + kFirstEntries);
    std::memset(const_cast<char*>(set.pointer), 0, sizeof(Header));
    reserve(set, rooms, kFirstBuckets, kFirstEntries);
  }
  Parts parts(const_cast<char*>(set.pointer));
  if (parts.bucket(value) != 0) return false;
  const Header header = *parts.header;
  const std::uint64_t wanted = std::uint64_t{header.used} + 4 + (std::uint64_t{value.length} + 3) / 4 * 4;
  const std::uint64_t capacity = set.length - sizeof(Header) - std::uint64_t{header.buckets} * 4;
  const bool crowded = (std::uint64_t{header.count} + 1) * 4 > std::uint64_t{header.buckets} * 3;
  if (crowded || wanted > capacity) {
    reserve(set, rooms, crowded ? header.buckets * 2 : header.buckets, wanted > capacity ? wanted * 2 : capacity);
    parts = Parts(const_cast<char*>(set.pointer));
  }
  parts.bucket(value) = header.used + 1;
  char* entry = parts.entries + header.used;
  std::memcpy(entry, &value.length, 4);
  std::memcpy(entry + 4, value.data(), value.length);
  std::memset(entry + 4 + value.length, 0, static_cast<std::size_t>(wanted - header.used - 4 - value.length));
  parts.header->used = static_cast<std::uint32_t>(wanted);
  ++parts.header->count;
  return true;
}

void merge(StringView& into, TextRooms& rooms, const StringView& from) {
  if (from.length == 0) return;
  const Parts parts(const_cast<char*>(from.pointer));
  for (std::uint32_t at = 0; at < parts.header->used;) {
    const StringView value = parts.entry(at);
    insert(into, rooms, value);
    at += 4 + (value.length + 3) / 4 * 4;
  }
}

bool is_whole(const StringView& bytes) {
  if (bytes.length == 0) return true;
  if (bytes.length < sizeof(Header)) return false;
  const auto at = [&bytes](std::uint64_t offset) {
    std::uint32_t number;
    std::memcpy(&number, bytes.data() + offset, sizeof number);
    return number;
  };
  const Header header = header_of(bytes);
  const std::uint64_t start = sizeof(Header) + std::uint64_t{header.buckets} * 4;
  if (header.buckets < kFirstBuckets || !std::has_single_bit(header.buckets) || start > bytes.length) return false;
  if (header.used > bytes.length - start || header.used % 4 != 0 || header.unused != 0) return false;
  if (std::uint64_t{header.count} * 4 > std::uint64_t{header.buckets} * 3) return false;  // a search ends at an empty bucket

  std::vector<std::uint32_t> offsets;  // of the entries, ascending
  offsets.reserve(std::min(header.count, header.used / 4));
  for (std::uint64_t next = 0; next < header.used;) {
    const std::uint64_t padded = 4 + (std::uint64_t{header.used - next >= 4 ? at(start + next) : 0} + 3) / 4 * 4;
    if (padded > header.used - next) return false;
    offsets.push_back(static_cast<std::uint32_t>(next));
    next += padded;
  }
  if (offsets.size() != header.count) return false;
  std::uint32_t taken = 0;
  for (std::uint32_t bucket = 0; bucket < header.buckets; ++bucket) {
    const std::uint32_t entry = at(sizeof(Header) + std::uint64_t{bucket} * 4);
    if (entry == 0) continue;
    if (!std::ranges::binary_search(offsets, entry - 1)) return false;
    ++taken;
  }
  if (taken != header.count) return false;
  const auto value_at = [&](std::uint32_t offset) { return StringView(bytes.data() + start + offset + 4, at(start + offset)); };
  return std::ranges::all_of(offsets, [&](std::uint32_t offset) {  // each is where a search for it comes, and there only once
    const StringView value = value_at(offset);
    auto bucket = static_cast<std::uint32_t>(hash_of(value)) & (header.buckets - 1);
    while (true) {
      const std::uint32_t entry = at(sizeof(Header) + std::uint64_t{bucket} * 4);
      if (entry == 0) return false;
      if (value_at(entry - 1) == value) return entry == offset + 1;
      bucket = (bucket + 1) & (header.buckets - 1);
    }
  });
}

}  // namespace rayelastic::value_set
