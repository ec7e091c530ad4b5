#include "rayelastic/record/hash.hpp"

#include <bit>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace rayelastic;

namespace {

std::uint64_t hash_text(const std::string& text) { return hash_of(StringView(text.data(), static_cast<std::uint32_t>(text.size()))); }

}  // namespace

// Computed by a Python reimplementation of hash.hpp. If one of them changes, keys move between replicas and exports don't import.
TEST(hashes_are_the_same_on_every_machine) {
  CHECK_EQ(hash_text(""), 0xa5506ff52926ac13ULL);
  CHECK_EQ(hash_text("a"), 0x55ba569d22b2a3f7ULL);
  CHECK_EQ(hash_text("word count"), 0xe5f5c179c2409738ULL);
  CHECK_EQ(hash_text("twelve bytes"), 0xbaaed92f11491e0bULL);
  CHECK_EQ(hash_text("thirteen byte"), 0xf0b455e29db004dfULL);
  CHECK_EQ(hash_text("exactly 16 bytes"), 0xa3dcae93a4cd97a0ULL);
  CHECK_EQ(hash_text("the quick brown fox jumps over the lazy dog"), 0x32379c5f406765aeULL);
  CHECK_EQ(hash_of(std::uint64_t{0}), 0xa5506ff52926ac13ULL);
  CHECK_EQ(hash_of(std::uint64_t{1}), 0x4290390c274813c9ULL);
}

TEST(hash_depends_on_content_not_on_place) {
  const std::string text = "a text that is longer than twelve bytes";
  std::vector<char> shifted(text.size() + 7);
  for (std::size_t shift = 0; shift < 7; ++shift) {
    for (std::size_t length = 0; length <= text.size(); ++length) {
      std::memcpy(shifted.data() + shift, text.data(), length);
      CHECK_EQ(hash_of(StringView(shifted.data() + shift, static_cast<std::uint32_t>(length))), hash_text(text.substr(0, length)));
    }
  }
}

TEST(every_bit_of_a_text_changes_half_of_the_hash) {
  std::mt19937_64 random(7);
  for (const std::size_t length : {1U, 4U, 5U, 12U, 13U, 16U, 17U, 31U, 32U, 33U, 70U}) {
    double flipped = 0;
    int trials = 0;
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::string text(length, ' ');
      for (char& byte : text) byte = static_cast<char>(random());
      const std::uint64_t hash = hash_text(text);
      for (std::size_t bit = 0; bit < 8 * length; ++bit, ++trials) {
        std::string other = text;
        other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << (bit % 8)));
        CHECK(hash_text(other) != hash);
        flipped += std::popcount(hash_text(other) ^ hash);
      }
    }
    CHECK(flipped / trials > 30 && flipped / trials < 34);
  }
}

TEST(short_keys_spread_over_partitions) {
  constexpr int kPartitions = 271;  // Joker J12
  std::vector<int> low(kPartitions);
  std::vector<int> high(kPartitions);
  for (int i = 0; i < 271'000; ++i) {
    const std::uint64_t hash = hash_text("key" + std::to_string(i));
    ++low[hash % kPartitions];
    ++high[static_cast<std::size_t>((hash >> 32) * kPartitions >> 32)];
  }
  for (int i = 0; i < kPartitions; ++i) {
    CHECK(low[i] > 800 && low[i] < 1200);
    CHECK(high[i] > 800 && high[i] < 1200);
  }
}

REL_TEST_MAIN
