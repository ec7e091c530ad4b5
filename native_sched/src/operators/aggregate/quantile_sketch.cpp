#include "operators/aggregate/quantile_sketch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace rayelastic::quantile_sketch {

namespace {

constexpr double kSmallest = 1e-300;
constexpr std::int32_t kSpare = 16;           // buckets more than needed when a side grows
constexpr std::int64_t kMostSpare = 1 << 20;  // as it adds up when sketches are merged that were merged; no sketch from outside has more

struct Side {  // the buckets of the positive, or of the negative values
  std::int32_t low = 0;
  std::int32_t size = 0;
};

struct Header {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();
  Side sides[2];  // positive, negative
};

struct Parts {
  explicit Parts(const StringView& sketch) noexcept
      : header(reinterpret_cast<Header*>(const_cast<char*>(sketch.pointer))), buckets(reinterpret_cast<std::uint64_t*>(header + 1)) {}

  [[nodiscard]] std::uint64_t* of(int side) const noexcept { return side == 0 ? buckets : buckets + header->sides[0].size; }

  Header* header;
  std::uint64_t* buckets;
};

double log_gamma(double error) noexcept { return std::log((1 + error) / (1 - error)); }

std::int32_t index_of(double size, double error) noexcept {
  return static_cast<std::int32_t>(std::ceil(std::log(size) / log_gamma(error)));
}

void create(StringView& sketch, TextRooms& rooms) {
  const Header empty;
  std::memcpy(rooms.resize(sketch, sizeof empty), &empty, sizeof empty);
}

// The buckets of a side, which has `index` from now on.
std::uint64_t* widened(StringView& sketch, TextRooms& rooms, int which, std::int32_t index) {
  Parts parts(sketch);
  const Side before = parts.header->sides[which];
  if (before.size > 0 && index >= before.low && index < before.low + before.size) return parts.of(which);
  std::int32_t low = index;
  std::int32_t end = index + kSpare;
  if (before.size > 0) {
    low = index < before.low ? index - kSpare : before.low;
    end = index < before.low ? before.low + before.size : index + 1 + kSpare;
  }
  const Side after{low, end - low};
  const std::size_t others = static_cast<std::size_t>(parts.header->sides[1 - which].size);
  const std::size_t all = others + static_cast<std::size_t>(after.size);
  const std::size_t bytes = sizeof(Header) + all * 8;
  if (bytes > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("a sketch for quantiles has 4 GiB or more");
  rooms.resize(sketch, static_cast<std::uint32_t>(bytes));
  parts = Parts(sketch);
  std::uint64_t* from = parts.of(which);
  if (which == 0) std::memmove(from + after.size, from + before.size, others * 8);  // the negative ones are behind
  const auto shift = static_cast<std::size_t>(before.size == 0 ? 0 : before.low - after.low);
  std::memmove(from + shift, from, static_cast<std::size_t>(before.size) * 8);
  std::fill_n(from, shift, 0U);
  std::fill(from + shift + before.size, from + after.size, 0U);
  parts.header->sides[which] = after;
  return parts.of(which);
}

}  // namespace

void insert(StringView& sketch, TextRooms& rooms, double value, double error) {
  if (sketch.length == 0) create(sketch, rooms);
  Header& header = *Parts(sketch).header;
  ++header.count;
  header.least = std::min(header.least, value);
  header.greatest = std::max(header.greatest, value);
  const double size = std::min(std::abs(value), std::numeric_limits<double>::max());
  if (size < kSmallest) {
    ++header.zeros;
    return;
  }
  const std::int32_t index = index_of(size, error);
  const int which = value < 0 ? 1 : 0;
  std::uint64_t* buckets = widened(sketch, rooms, which, index);
  ++buckets[index - Parts(sketch).header->sides[which].low];
}

void merge(StringView& into, TextRooms& rooms, const StringView& from) {
  if (from.length == 0) return;
  if (into.length == 0) create(into, rooms);
  const Parts other(from);
  Header& header = *Parts(into).header;
  header.count += other.header->count;
  header.zeros += other.header->zeros;
  header.least = std::min(header.least, other.header->least);
  header.greatest = std::max(header.greatest, other.header->greatest);
  for (int which = 0; which < 2; ++which) {
    const Side side = other.header->sides[which];
    if (side.size == 0) continue;
    (void)widened(into, rooms, which, side.low);
    std::uint64_t* buckets = widened(into, rooms, which, side.low + side.size - 1);
    const std::uint64_t* more = other.of(which);
    const std::int32_t shift = side.low - Parts(into).header->sides[which].low;
    for (std::int32_t i = 0; i < side.size; ++i) buckets[i + shift] += more[i];
  }
}

bool is_whole(const StringView& bytes, double error) {
  if (bytes.length == 0) return true;
  Header header;
  if (bytes.length < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::int64_t farthest = index_of(std::numeric_limits<double>::max(), error) + kMostSpare;
  std::uint64_t buckets = 0;
  for (const Side side : header.sides) {
    if (side.size < 0 || side.low < -farthest || std::int64_t{side.low} + side.size > farthest) return false;
    buckets += static_cast<std::uint64_t>(side.size);
  }
  if (bytes.length != sizeof header + buckets * 8 || header.count == 0 || !(header.least <= header.greatest)) return false;
  std::uint64_t left = header.count;
  const auto counted = [&left](std::uint64_t values) {
    if (values > left) return false;
    left -= values;
    return true;
  };
  if (!counted(header.zeros)) return false;
  for (std::uint64_t i = 0; i < buckets; ++i) {
    std::uint64_t values;
    std::memcpy(&values, bytes.data() + sizeof header + i * 8, sizeof values);
    if (!counted(values)) return false;
  }
  return left == 0;
}

double quantile(const StringView& sketch, double probability, double error) noexcept {
  const Parts parts(sketch);
  const Header& header = *parts.header;
  const auto rank = static_cast<std::uint64_t>(std::floor(probability * static_cast<double>(header.count - 1)));
  const double gamma = std::exp(log_gamma(error));
  const auto value_of = [&](std::int32_t index) { return 2 * std::exp(index * log_gamma(error)) / (gamma + 1); };
  const auto clamped = [&](double value) { return std::clamp(value, header.least, header.greatest); };
  std::uint64_t before = 0;
  const Side negative = header.sides[1];
  for (std::int32_t i = negative.size - 1; i >= 0; --i) {
    before += parts.of(1)[i];
    if (before > rank) return clamped(-value_of(negative.low + i));
  }
  before += header.zeros;
  if (before > rank) return clamped(0);
  const Side positive = header.sides[0];
  for (std::int32_t i = 0; i < positive.size; ++i) {
    before += parts.of(0)[i];
    if (before > rank) return clamped(value_of(positive.low + i));
  }
  return header.greatest;
}

}  // namespace rayelastic::quantile_sketch
