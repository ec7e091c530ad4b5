// Expectations are what CPython 3.11 gives.
#include "rayelastic/text.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

std::int64_t size(const std::string& text) { return static_cast<std::int64_t>(text.size()); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::int64_t end = 0;
  for (std::int64_t at = 0; (at = rel_text_next_word(text.data(), size(text), end, &end)) >= 0;) words.push_back(text.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at)));
  return words;
}

std::string strip(const std::string& text) {
  std::int64_t end = 0;
  const std::int64_t begin = rel_text_strip(text.data(), size(text), &end);
  return text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

std::int64_t find(const std::string& text, const std::string& part) { return rel_text_find(text.data(), size(text), part.data(), size(part)); }

std::string repair(const std::string& bytes) {
  std::string out(3 * bytes.size(), '\0');
  out.resize(static_cast<std::size_t>(rel_text_repair(bytes.data(), size(bytes), out.data())));
  CHECK_EQ(rel_text_is_valid(out.data(), size(out)), 1);
  CHECK_EQ(rel_text_is_valid(bytes.data(), size(bytes)), out == bytes ? 1 : 0);
  return out;
}

int to_int(const std::string& text, std::int64_t& value) { return rel_text_to_int(text.data(), size(text), &value); }
int to_float(const std::string& text, double& value) { return rel_text_to_float(text.data(), size(text), &value); }

const std::string kReplacement = "\xef\xbf\xbd";

}  // namespace

TEST(splits_on_all_white_space_of_python) {
  using Words = std::vector<std::string>;
  CHECK(split("") == Words{});
  CHECK(split(" \t\n ") == Words{});
  CHECK(split("one") == Words{"one"});
  CHECK((split("  two words\x1c\x1d\x1e\x1f!") == Words{"two", "words", "!"}));
  CHECK((split("a\u00a0b\u0085c\u1680d\u2000e\u200af\u2028g\u2029h\u202fi\u205fj\u3000k") == Words{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}));
  CHECK((split("a\u200bb \u180ec \u00e9\u2030\u3001 x\x01\x08y") == Words{"a\u200bb", "\u180ec", "\u00e9\u2030\u3001", "x\x01\x08y"}));
  CHECK((split("a-word-that-is-longer-than-eight another-one-of-them") == Words{"a-word-that-is-longer-than-eight", "another-one-of-them"}));
}

TEST(strips_both_ends) {
  CHECK_EQ(strip("  a b\u3000\n"), "a b");
  CHECK_EQ(strip("\u00a0\u00e9"), "\u00e9");
  CHECK_EQ(strip(" \u2003 "), "");
  CHECK_EQ(strip(""), "");
}

TEST(indexes_are_code_points) {
  const std::string text = "na\u00efve \U0001d11e \u20ac";
  CHECK_EQ(rel_text_length(text.data(), size(text)), 9);
  CHECK_EQ(rel_text_offset(text.data(), size(text), 0), 0);
  CHECK_EQ(rel_text_offset(text.data(), size(text), 3), 4);
  CHECK_EQ(rel_text_offset(text.data(), size(text), 99), size(text));
  CHECK_EQ(find(text, "\u20ac"), 8);
  CHECK_EQ(find(text, ""), 0);
  CHECK_EQ(find(text, "x"), -1);
  CHECK_EQ(find("", ""), 0);
  CHECK_EQ(rel_text_find_bytes("aXaX", 4, "X", 1, 2), 3);
  CHECK_EQ(rel_text_find_bytes("aX", 2, "", 0, 2), 2);
  CHECK_EQ(rel_text_find_bytes("aX", 2, "", 0, 3), -1);
  CHECK_EQ(rel_text_contains("Failed password for root", 24, "password", 8), 1);
  CHECK(rel_text_compare("a", 1, "ab", 2) < 0 && rel_text_compare("\xc3\xa9", 2, "z", 1) > 0 && rel_text_compare("", 0, "", 0) == 0);
}

TEST(case_is_changed_in_ascii_only) {
  std::string out(8, ' ');
  CHECK_EQ(rel_text_lower("AZ@[az09", 8, out.data()), 0);
  CHECK_EQ(out, "az@[az09");
  CHECK_EQ(rel_text_upper("AZ`{az09", 8, out.data()), 0);
  CHECK_EQ(out, "AZ`{AZ09");
  CHECK_EQ(rel_text_lower("\xc3\x89", 2, out.data()), 1);
}

TEST(parses_integers_as_python_does) {
  std::int64_t value = 0;
  const std::vector<std::pair<std::string, std::int64_t>> good = {{"0", 0}, {" -12\n", -12}, {"+7", 7}, {"1_000", 1000}, {"0_0", 0}, {"007", 7}, {"\u0663\u0664", 34},
      {"\u00a0\uff15\u3000", 5}, {"9223372036854775807", std::numeric_limits<std::int64_t>::max()}, {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()}};
  for (const auto& [text, expected] : good) {
    CHECK_EQ(to_int(text, value), REL_NUMBER_OK);
    CHECK_EQ(value, expected);
  }
  for (const char* text : {"", " ", "-", "1__0", "_1", "1_", "-_1", "- 1", "1 2", "0x10", "1.0", "1e5", "\x1c" "1", "\u00e9", "1\u00bd"}) CHECK_EQ(to_int(text, value), REL_NUMBER_INVALID);
  for (const char* text : {"9223372036854775808", "-9223372036854775809", "99999999999999999999999"}) CHECK_EQ(to_int(text, value), REL_NUMBER_RANGE);
  CHECK_EQ(to_int(std::string(4301, '0'), value), REL_NUMBER_RANGE);
  CHECK_EQ(to_int(std::string(4301, '0') + "x", value), REL_NUMBER_INVALID);
}

TEST(parses_floats_as_python_does) {
  double value = 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::string, double>> good = {{"1", 1}, {" -1.5e3 ", -1500}, {".5", 0.5}, {"5.", 5}, {"1_0.0_1", 10.01}, {"1e5_0", 1e50}, {"0.1", 0.1}, {"1e400", kInfinity},
      {"-1e400", -kInfinity}, {"1e-400", 0}, {"5e-324", 5e-324}, {"inF", kInfinity}, {"-Infinity", -kInfinity}, {"+1", 1}, {"\u0663.\u0665", 3.5}, {"123456789012345678901234567890", 123456789012345678901234567890.0}};
  for (const auto& [text, expected] : good) {
    CHECK_EQ(to_float(text, value), REL_NUMBER_OK);
    CHECK_EQ(value, expected);
  }
  CHECK_EQ(to_float("-nan", value), REL_NUMBER_OK);
  CHECK(std::isnan(value));
  for (const char* text : {"", ".", "1e", "1e+", "1__0", "1._0", "1_.0", "1e_5", "_1", "1_", "in_f", "nan(1)", "0x1p3", "1d5", "1 2", "--1", "infinit"}) CHECK_EQ(to_float(text, value), REL_NUMBER_INVALID);
}

TEST(repairs_utf8_as_the_replace_handler_does) {
  CHECK_EQ(repair("plain, and a bit more than thirty-two bytes of it"), "plain, and a bit more than thirty-two bytes of it");
  CHECK_EQ(repair("\u00e9\u20ac\U0001d11e"), "\u00e9\u20ac\U0001d11e");
  CHECK_EQ(repair("a\xff" "b"), "a" + kReplacement + "b");
  CHECK_EQ(repair("\xe2\x82"), kReplacement);                                   // cut short: one
  CHECK_EQ(repair("\xe2\x82" "A"), kReplacement + "A");
  CHECK_EQ(repair("\xf0\x9f\x98"), kReplacement);
  CHECK_EQ(repair("\xe0\x80\x80"), kReplacement + kReplacement + kReplacement);  // overlong: one each
  CHECK_EQ(repair("\xed\xa0\x80"), kReplacement + kReplacement + kReplacement);  // surrogate
  CHECK_EQ(repair("\xf4\x90\x80\x80"), kReplacement + kReplacement + kReplacement + kReplacement);
  CHECK_EQ(repair("\xc0\xaf"), kReplacement + kReplacement);
  CHECK_EQ(repair("\xf1\x80\xe1\x80\xc2"), kReplacement + kReplacement + kReplacement);
  CHECK_EQ(repair("\xef\xbb\xbf" "mark"), "\xef\xbb\xbf" "mark");
}

REL_TEST_MAIN
