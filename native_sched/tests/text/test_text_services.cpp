// The text services that compiled code calls, over memory of this test: what CPython's own answer. Meant for AddressSanitizer.
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "rayelastic/text/text.h"

namespace {

constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min();

std::vector<std::unique_ptr<char[]>> blocks;
bool has_memory = true;

void* allocate(rel_context*, std::int64_t bytes) {
  if (!has_memory) return nullptr;
  blocks.push_back(std::make_unique<char[]>(static_cast<std::size_t>(bytes)));  // exactly as much as was asked for
  return blocks.back().get();
}

const rel_text_room kRoom{&allocate, nullptr};

rel_text given(std::string_view text) { return {text.data(), static_cast<std::int64_t>(text.size())}; }
std::string shown(const rel_text& text) { return {text.data, static_cast<std::size_t>(text.bytes)}; }

std::string slice(std::string_view text, std::int64_t start, std::int64_t stop, std::int64_t step, bool is_bytes = false) {
  const rel_text all = given(text);
  rel_text made{};
  CHECK_EQ(rel_text_slice(&kRoom, &all, start, stop, step, is_bytes ? 1 : 0, &made), REL_TEXT_OK);
  return shown(made);
}

std::string replaced(std::string_view text, std::string_view old, std::string_view by, std::int64_t count) {
  const rel_text all = given(text), wanted = given(old), put = given(by);
  rel_text made{};
  CHECK_EQ(rel_text_replace(&kRoom, &all, &wanted, &put, count, 0, &made), REL_TEXT_OK);
  return shown(made);
}

std::string padded(std::string_view text, std::int64_t width, std::string_view fill, char side) {
  const rel_text all = given(text), one = given(fill);
  rel_text made{};
  const std::int32_t status = rel_text_pad(&kRoom, &all, width, &one, side, 0, &made);
  return status == REL_TEXT_OK ? shown(made) : "status " + std::to_string(status);
}

std::string joined(const rel_texts& texts) {
  std::string all;
  for (std::int64_t i = 0; i < texts.count; ++i) all.append(i == 0 ? "" : "|").append(shown(texts.data[i]));
  return all;
}

std::int64_t found(std::string_view text, std::string_view part, std::int64_t start, std::int64_t end, bool from_right = false) {
  const rel_text all = given(text), wanted = given(part);
  std::int64_t index = 0;
  CHECK_EQ(rel_text_find(&all, &wanted, start, end, from_right ? 1 : 0, 0, 0, &index), REL_TEXT_OK);
  return index;
}

// Eszett and sigma alone, cased all of ASCII's letters and both sigmas, the apostrophe ignorable.
struct Tables {
  std::array<rel_text_mapping, 2> lower{{{0x3a3, 2, "\xcf\x83"}, {0x1e9e, 2, "\xc3\x9f"}}};
  std::array<rel_text_mapping, 1> title{{{0xdf, 2, "Ss"}}};
  alignas(4) std::array<char, 24> cased{};
  alignas(4) std::array<char, 16> ignorable{};

  Tables() {
    for (const char letter : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
      cased[static_cast<std::size_t>(letter >> 3)] |= static_cast<char>(1 << (letter & 7));
    const std::array<std::uint32_t, 2> borders{0xdf, 0x3ff};
    std::memcpy(cased.data() + 16, borders.data(), 8);
    ignorable['\'' >> 3] = static_cast<char>(1 << ('\'' & 7));
  }

  std::string change(std::string_view text, std::int64_t how, bool is_bytes = false) const {
    const rel_text all = given(text), small{reinterpret_cast<const char*>(lower.data()), sizeof lower},
                   first{reinterpret_cast<const char*>(title.data()), sizeof title}, with_case{cased.data(), 24},
                   skipped{ignorable.data(), 16};
    rel_text made{};
    CHECK_EQ(rel_text_change_case(&kRoom, &all, how, is_bytes ? 1 : 0, &small, &first, &with_case, &skipped, &made), REL_TEXT_OK);
    return shown(made);
  }
};

}  // namespace

TEST(slices_have_steps_over_characters) {
  CHECK_EQ(slice("a\u00e4\u4e2d\U0001d11e", kLast, kFirst, -1), "\U0001d11e\u4e2d\u00e4a");
  CHECK_EQ(slice("a\u00e4\u4e2d\U0001d11e", 0, kLast, 3), "a\U0001d11e");
  CHECK_EQ(slice("abcdef", -2, kFirst, -2), "eca");
  CHECK_EQ(slice("abc", 1, 1, 2) + slice("", kLast, kFirst, -1), "");
  CHECK_EQ(slice("abc", kLast, kFirst, kFirst), "c");
  CHECK_EQ(slice("\xff\xfe\xfd", 0, kLast, 2, true), "\xff\xfd");
}

TEST(replace_counts) {
  CHECK_EQ(replaced("aXbXc", "X", "<>", 1), "a<>bXc");
  CHECK_EQ(replaced("aXbXc", "X", "", -1), "abc");
  CHECK_EQ(replaced("\u00e4b", "", "-", -1), "-\u00e4-b-");
  CHECK_EQ(replaced("\u00e4b", "", "-", 2), "-\u00e4-b");
  CHECK_EQ(replaced("", "", "-", 1) + replaced("", "", "-", 0), "-");
}

TEST(padding_counts_characters) {
  CHECK_EQ(padded("\u00e4", 3, "\u4e2d", '<'), "\u00e4\u4e2d\u4e2d");
  CHECK_EQ(padded("ab", 5, " ", '^') + "|" + padded("a", 4, " ", '^'), "  ab | a  ");
  CHECK_EQ(padded("a", 3, "xy", '>'), "status 4");
  CHECK_EQ(padded("a", std::int64_t{1} << 60, " ", '>'), "status 2");
  rel_text made{};
  const rel_text minus = given("-7"), tabs = given("\ta\u00e4\tb\r\tc");
  CHECK_EQ(rel_text_zfill(&kRoom, &minus, 5, 0, &made), REL_TEXT_OK);
  CHECK_EQ(shown(made), "-0007");
  CHECK_EQ(rel_text_expand_tabs(&kRoom, &tabs, 4, 0, &made), REL_TEXT_OK);
  CHECK_EQ(shown(made), "    a\u00e4  b\r    c");
  CHECK_EQ(rel_text_expand_tabs(&kRoom, &tabs, std::int64_t{1} << 31, 0, &made), REL_TEXT_OVERFLOW_ERROR);
}

TEST(places_are_those_of_characters) {
  CHECK_EQ(found("\u00e4b\u00e4b", "b", 0, kLast), 1);
  CHECK_EQ(found("\u00e4b\u00e4b", "b", 2, kLast), 3);
  CHECK_EQ(found("\u00e4b\u00e4b", "b", -3, -1, true), 1);
  CHECK_EQ(found("\u00e4b", "", 2, kLast), 2);
  CHECK_EQ(found("\u00e4b", "", 3, kLast), -1);
  CHECK_EQ(found("\u00e4b", "", 2, 1), -1);
  const rel_text all = given("\u00e4ab"), parts[] = {given("x"), given("ab")};
  std::int64_t yes = 0;
  CHECK_EQ(rel_text_starts(&all, parts, 2, 1, kLast, 0, 0, &yes), REL_TEXT_OK);
  CHECK_EQ(yes, 1);
  CHECK_EQ(rel_text_starts(&all, parts, 2, 2, kLast, 1, 0, &yes), REL_TEXT_OK);
  CHECK_EQ(yes, 0);
}

TEST(texts_are_cut_from_their_end) {
  const rel_text words = given(" a\u2003b \u00e4 "), listed = given(",a,b"), comma = given(",");
  rel_texts made{};
  CHECK_EQ(rel_text_rsplit_space(&kRoom, &words, -1, 0, &made), REL_TEXT_OK);
  CHECK_EQ(joined(made), "a|b|\u00e4");
  CHECK_EQ(rel_text_rsplit_space(&kRoom, &words, 1, 0, &made), REL_TEXT_OK);
  CHECK_EQ(joined(made), " a\u2003b|\u00e4");
  CHECK_EQ(rel_text_rsplit(&kRoom, &listed, &comma, -1, &made), REL_TEXT_OK);
  CHECK_EQ(joined(made), "|a|b");
  CHECK_EQ(rel_text_rsplit(&kRoom, &listed, &comma, 1, &made), REL_TEXT_OK);
  CHECK_EQ(joined(made), ",a|b");
  const rel_text none = given(""), lines = given("a\r\n\u0085b\u2028\x1c");
  CHECK_EQ(rel_text_rsplit(&kRoom, &listed, &none, 1, &made), REL_TEXT_VALUE_ERROR);
  CHECK_EQ(rel_text_lines(&kRoom, &lines, 0, 0, &made), REL_TEXT_OK);
  CHECK_EQ(joined(made), "a||b|");
  CHECK_EQ(rel_text_lines(&kRoom, &lines, 1, 1, &made), REL_TEXT_OK);
  CHECK_EQ(joined(made), "a\r\n|\u0085b\u2028\x1c");
}

TEST(case_is_changed_by_the_tables) {
  const Tables tables;
  CHECK_EQ(tables.change("aB\u1e9e", REL_CASE_LOWER), "ab\u00df");
  CHECK_EQ(tables.change("A\u03a3 \u03a3A\u03a3'", REL_CASE_LOWER), "a\u03c2 \u03c3a\u03c2'");
  CHECK_EQ(tables.change("\u00dfa \u00df\u00df", REL_CASE_TITLE), "Ssa Ss\u00df");
  CHECK_EQ(tables.change("\u00dfA", REL_CASE_CAPITALIZE), "Ssa");
  CHECK_EQ(tables.change("they're 3x a\xe4", REL_CASE_TITLE, true), "They'Re 3X A\xe4");
}

TEST(codecs_read_and_write) {
  const rel_text broken = given("a\xe2\x82z\xff\u00e4"), wide = given("a\u00e4\u4e2d");
  rel_text made{};
  CHECK_EQ(rel_text_decode(&kRoom, &broken, REL_CODEC_UTF8, REL_ON_ERROR_STRICT, &made), REL_TEXT_DECODE_ERROR);
  CHECK_EQ(rel_text_decode(&kRoom, &broken, REL_CODEC_UTF8, REL_ON_ERROR_IGNORE, &made), REL_TEXT_OK);
  CHECK_EQ(shown(made), "az\u00e4");
  CHECK_EQ(rel_text_decode(&kRoom, &broken, REL_CODEC_UTF8, REL_ON_ERROR_REPLACE, &made), REL_TEXT_OK);
  CHECK_EQ(shown(made), "a\ufffdz\ufffd\u00e4");
  CHECK_EQ(rel_text_encode(&kRoom, &wide, REL_CODEC_LATIN1, REL_ON_ERROR_STRICT, &made), REL_TEXT_ENCODE_ERROR);
  CHECK_EQ(rel_text_encode(&kRoom, &wide, REL_CODEC_LATIN1, REL_ON_ERROR_REPLACE, &made), REL_TEXT_OK);
  CHECK_EQ(shown(made), "a\xe4?");
  CHECK_EQ(rel_text_hex(&kRoom, &made, &made), REL_TEXT_OK);
  CHECK_EQ(shown(made), "61e43f");
}

TEST(without_memory_there_is_a_status) {
  has_memory = false;
  const rel_text all = given("a b");
  rel_text made{};
  rel_texts several{};
  CHECK_EQ(rel_text_slice(&kRoom, &all, kLast, kFirst, -1, 0, &made), REL_TEXT_NO_MEMORY);
  CHECK_EQ(rel_text_replace(&kRoom, &all, &all, &all, -1, 0, &made), REL_TEXT_NO_MEMORY);
  CHECK_EQ(rel_text_rsplit_space(&kRoom, &all, -1, 0, &several), REL_TEXT_NO_MEMORY);
  CHECK_EQ(rel_text_of_point(&kRoom, 97, &made), REL_TEXT_NO_MEMORY);
  has_memory = true;
}

REL_TEST_MAIN
