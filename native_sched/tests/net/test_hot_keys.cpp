// The most frequent key of a stream, from a sample: named with about its share; none where keys are alike; another one once it changes.
#include "rayelastic/net/hot_keys.hpp"

#include <cmath>
#include <string>

#include "check.hpp"
#include "rayelastic/record/key_extractor.hpp"

using namespace rayelastic;
using namespace rayelastic::check;

namespace {

constexpr std::size_t kRun = 100;  // records

StringView view_of(const std::string& text) { return {text.data(), static_cast<std::uint32_t>(text.size())}; }

// Feeds runs of records whose keys are key(n) for n = 0, 1, ...; how often one was looked at.
template <typename Key>
std::size_t feed(HotKeys& keys, std::size_t records, Key&& key) {
  std::size_t looks = 0;
  std::string text;
  for (std::size_t first = 0; first < records; first += kRun) {
    (void)keys.pass(kRun, [&](std::size_t at) {
      ++looks;
      text = key(first + at);
      return view_of(text);
    });
  }
  return looks;
}

std::string numbered(std::size_t number) { return "a key that is too long to be inline " + std::to_string(number); }

}  // namespace

TEST(a_hot_key_is_named_with_its_share) {
  HotKeys keys;
  CHECK(!keys.hottest().has_value());
  // 61 of 100 have one key, the others one of a thousand; the period of the stream is that of the runs.
  const std::size_t looks = feed(keys, 400'000, [](std::size_t n) { return numbered(n * 37 % 100 < 61 ? 0 : 1 + n % 1000); });
  const auto found = keys.hottest();
  CHECK(found.has_value());
  CHECK(found->bytes == numbered(0));
  CHECK(!found->null);
  CHECK(std::abs(found->share - 0.61) < 0.06);
  CHECK_EQ(found->looks, looks);
  CHECK(looks < 400'000 / 20);
}

TEST(no_key_is_hot_where_all_are_alike) {
  HotKeys keys;
  (void)feed(keys, 400'000, [](std::size_t n) { return numbered(n * 7919 % 10'007); });
  CHECK(keys.hottest()->share < 0.05);
}

TEST(another_key_gets_hot) {
  HotKeys keys;
  (void)feed(keys, 1'000'000, [](std::size_t n) { return numbered(n % 2 == 0 ? 1 : n); });
  CHECK(keys.hottest()->bytes == numbered(1));
  (void)feed(keys, 200'000, [](std::size_t n) { return numbered(n % 2 == 0 ? 2 : n); });
  CHECK(keys.hottest()->bytes == numbered(2));
}

TEST(null_and_the_empty_text_are_two_keys) {
  HotKeys keys;
  for (int i = 0; i < 100; ++i) keys.see(i % 3 == 0 ? StringView() : null_key());
  const auto found = keys.hottest();
  CHECK(found->null);
  CHECK(found->bytes.empty());
  CHECK(std::abs(found->share - 0.66) < 0.02);
}

REL_TEST_MAIN
