#include "rayelastic/net/hot_keys.hpp"

#include <algorithm>

#include "rayelastic/assert.hpp"
#include "rayelastic/record/hash.hpp"
#include "rayelastic/record/key_extractor.hpp"

namespace rayelastic {

std::size_t HotKeys::next_gap() noexcept {
  if (looks_ < kEach) return 0;
  dice_ ^= dice_ << 13U;  // xorshift64 (Marsaglia 2003)
  dice_ ^= dice_ >> 7U;
  dice_ ^= dice_ << 17U;
  return dice_ % kMask;
}

void HotKeys::see(const StringView& key) {
  ++looks_;
  ++untold_;
  const std::uint64_t hash = hash_of(key);
  auto found = std::ranges::find_if(counters_, [hash](const Counter& each) { return each.count > 0 && each.hash == hash; });
  if (found == counters_.end()) {
    found = std::ranges::min_element(counters_, {}, &Counter::count);
    found->error = found->count;
    found->hash = hash;
    found->null = is_null_key(key);
    found->bytes.assign(key.view());
  }
  RE_CHECK(found->count >= found->error);
  ++found->count;
  if (++total_ < kKept) return;
  total_ /= 2;
  for (Counter& each : counters_) {
    each.count /= 2;
    each.error /= 2;
  }
}

std::optional<HotKey> HotKeys::hottest() const {
  if (total_ < kTold) return std::nullopt;
  const auto sure = [](const Counter& each) { return each.count - each.error; };
  const auto most = std::ranges::max_element(counters_, {}, sure);
  return HotKey{.bytes = most->bytes, .null = most->null, .share = static_cast<double>(sure(*most)) / total_, .looks = looks_};
}

}  // namespace rayelastic
