#include "state/waiting_records.hpp"

#include <algorithm>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"

namespace rayelastic {

std::uint64_t WaitingRecords::layout() const noexcept { return hash_of(pool_.layout() ^ ports_ ^ (tagged_ ? std::uint64_t{1} << 32 : 0)); }

std::vector<Waiting> WaitingRecords::sorted() const {
  std::vector<Waiting> sorted = heap_.heap();
  RE_ASSERT(std::is_heap(sorted.begin(), sorted.end()));
  std::ranges::sort(sorted, [](const Waiting& one, const Waiting& other) { return other < one; });
  return sorted;
}

void WaitingRecords::for_each(const std::function<void(const Waiting& waiting)>& visit) const { std::ranges::for_each(sorted(), visit); }

bool WaitingRecords::write(StateWriter& writer, const HashRanges& of, std::uint64_t& at, std::size_t max_bytes) {
  const std::vector<Waiting> all = sorted();
  bool some = writer.keys() > 0;
  for (; at < all.size(); ++at) {
    const Waiting& next = all[static_cast<std::size_t>(at)];
    if (!is_of(next.record, of)) continue;
    if (some && writer.size() >= max_bytes) return true;
    RE_CHECK(next.port < ports_);  // as read() takes it
    writer.number(next.port);
    if (tagged_) writer.number(next.tag);
    writer.record(next.record, pool_.shape());
    some = true;
  }
  return false;
}

void WaitingRecords::read(StateReader& reader, bool keep) {
  const auto port = reader.number<std::uint32_t>();
  const auto tag = tagged_ ? reader.number<std::uint64_t>() : std::uint64_t{0};
  const std::byte* const exported = reader.record(pool_.shape());
  if (port >= ports_) throw StateError("exported state has a record of an input port that there isn't");
  if (!keep) return;
  std::byte* const record = pool_.restore(exported);
  const std::int64_t time = time_(record);
  heap_.push({due_(time), time, port, taken_++, record, tag});
}

void WaitingRecords::remove(const HashRanges& of) {
  std::vector<Waiting>& heap = heap_.heap();
  std::erase_if(heap, [&](const Waiting& each) {
    const bool goes = is_of(each.record, of);
    if (goes) pool_.drop(each.record);
    return goes;
  });
  std::make_heap(heap.begin(), heap.end());
}

bool WaitingRecords::is_of(const std::byte* record, const HashRanges& of) {
  std::uint64_t hash = 0;
  if (keys_ != nullptr) {
    StringView key;
    keys_->extract(record, 1, &key);
    hash = hash_of(key);
  }
  return of.contains(hash);
}

}  // namespace rayelastic
