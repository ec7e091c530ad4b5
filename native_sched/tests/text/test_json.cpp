// Values of JSON texts: what json.loads and Python's operators answer, and what is left to them.
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "check.hpp"
#include "rayelastic/text/json.h"

namespace {

rel_text given(std::string_view text) { return {text.data(), static_cast<std::int64_t>(text.size())}; }

std::deque<std::string> made;

void* allocate(rel_context*, std::int64_t bytes) { return made.emplace_back(static_cast<std::size_t>(bytes), '\0').data(); }

const rel_text_room kRoom{allocate, nullptr};

using Text = std::optional<std::string>;
using Whole = std::optional<std::int64_t>;

Text shown(std::int32_t status, const rel_text& text) {
  return status == REL_TEXT_OK ? Text(std::string(text.data, static_cast<std::size_t>(text.bytes))) : std::nullopt;
}

Text member(std::string_view json, std::string_view key, bool required = true) {
  const rel_text text = given(json), name = given(key);
  rel_text found{};
  return shown(rel_json_member(&kRoom, &text, &name, required ? 1 : 0, &found), found);
}

Text element(std::string_view json, std::int64_t index) {
  const rel_text text = given(json);
  rel_text found{};
  return shown(rel_json_element(&kRoom, &text, index, &found), found);
}

Text text_of(std::string_view json) {
  const rel_text text = given(json);
  rel_text found{};
  return shown(rel_json_to_text(&kRoom, &text, &found), found);
}

Whole asked(std::int32_t (*service)(const rel_text*, std::int64_t*), std::string_view json) {
  const rel_text text = given(json);
  std::int64_t value = 0;
  return service(&text, &value) == REL_TEXT_OK ? Whole(value) : std::nullopt;
}

Whole asked(std::int32_t (*service)(const rel_text*, const rel_text*, std::int64_t*), std::string_view json, std::string_view other) {
  const rel_text text = given(json), second = given(other);
  std::int64_t value = 0;
  return service(&text, &second, &value) == REL_TEXT_OK ? Whole(value) : std::nullopt;
}

Whole order(std::string_view json, auto other, bool ordered = true) {
  const rel_text text = given(json);
  std::int64_t value = 0;
  std::int32_t status = REL_TEXT_OK;
  if constexpr (std::is_floating_point_v<decltype(other)>) {
    status = rel_json_order_float(&text, other, ordered ? 1 : 0, &value);
  } else {
    status = rel_json_order_int(&text, other, ordered ? 1 : 0, &value);
  }
  return status == REL_TEXT_OK ? Whole(value) : std::nullopt;
}

double float_of(std::string_view json) {
  const rel_text text = given(json);
  double value = 0;
  return rel_json_to_float(&text, &value) == REL_TEXT_OK ? value : 12345.0;
}

double same_float_of(std::string_view json) {
  const rel_text text = given(json);
  double value = 0;
  return rel_json_to_same_float(&text, &value) == REL_TEXT_OK ? value : 12345.0;
}

constexpr std::int64_t kWord = 1;

}  // namespace

TEST(members_and_elements_are_parts_of_the_text) {
  CHECK(member(R"( {"a" : {"b": [1, 2]} , "c":null} )", "a") == R"({"b": [1, 2]})");
  CHECK(member(R"({"a": 1, "b": 2, "a": 3})", "a") == "3");  // the last one counts
  CHECK(member(R"({"\u0061\n\"": 1})", "a\n\"") == "1");
  CHECK(!member(R"({"a": 1})", "b") && member(R"({"a": 1})", "b", false) == "null");
  CHECK(!member("[1]", "a") && !member("1", "a", false));
  CHECK(element("[1, [2, 3], \"x\"]", 1) == "[2, 3]" && element("[1, 2]", -1) == "2" && element("[1]", -1) == "1");
  CHECK(!element("[1]", 1) && !element("[1]", -2) && !element("[]", 0) && !element("{}", 0));
}

TEST(what_isnt_json_is_refused_wherever_it_stands) {
  for (const std::string_view bad : {"",
                                     " ",
                                     "{",
                                     "[1,]",
                                     "{\"a\":1,}",
                                     "{\"a\" 1}",
                                     "{a:1}",
                                     "[01]",
                                     "[1.]",
                                     "[.5]",
                                     "[1e]",
                                     "[-]",
                                     "[+1]",
                                     "[tru]",
                                     "nul",
                                     "[1] 2",
                                     "\"a",
                                     "[\"\\x\"]",
                                     "[\"\\u12\"]",
                                     "[\"a\nb\"]",
                                     "['a']",
                                     "[1 2]",
                                     "\xef\xbb\xbf[1]",
                                     "[Nan]"}) {
    CHECK(!asked(rel_json_length, bad) && !asked(rel_json_is_true, bad));
  }
  CHECK(!asked(rel_json_length, std::string_view("[\0]", 3)));
  CHECK(!member(R"({"a": 1, "b": })", "a"));
  const std::string deep(199, '['), deeper(200, '[');
  CHECK_EQ(asked(rel_json_length, deep + std::string(199, ']')), Whole(1));
  CHECK(!asked(rel_json_length, deeper + "1" + std::string(200, ']')));
}

TEST(texts_are_decoded) {
  CHECK(text_of(R"("plain")") == "plain" && text_of(R"(" \"\\\/\b\f\n\r\t")") == " \"\\/\b\f\n\r\t");
  CHECK(text_of(R"("\u00e9\u20AC\ud83d\ude00")") == "\u00e9\u20ac\U0001f600");
  CHECK(!text_of(R"("\ud83d")") && !text_of(R"("\ude00")") && !text_of(R"("\ud83d\u0041")") && !text_of("1") && !text_of("null"));
  CHECK_EQ(asked(rel_json_is_text, R"("\u0061b")", "ab"), Whole(1));
  CHECK_EQ(asked(rel_json_is_text, "\"ab\"", "a"), Whole(0));
  CHECK_EQ(asked(rel_json_is_text, "1", "1"), Whole(0));
  CHECK(!asked(rel_json_is_text, "[1", "1"));
}

TEST(numbers_are_whole_or_not) {
  CHECK_EQ(asked(rel_json_to_int, " -12 "), Whole(-12));
  CHECK_EQ(asked(rel_json_to_int, "9223372036854775807"), Whole(9223372036854775807));
  CHECK(!asked(rel_json_to_int, "9223372036854775808") && !asked(rel_json_to_int, "1.0") && !asked(rel_json_to_int, "true"));
  CHECK_EQ(float_of("1.5e3"), 1500.0);
  CHECK_EQ(float_of("-7"), -7.0);
  CHECK(std::isnan(float_of("NaN")) && float_of("-Infinity") < -1e308);
  CHECK(float_of("true") == 12345.0 && float_of("1e999") == 12345.0);
  CHECK(asked(rel_json_to_bool, "true") == kWord && asked(rel_json_to_bool, "false") == 0 && !asked(rel_json_to_bool, "1"));
}

TEST(numbers_are_compared_exactly) {
  CHECK(order("3", std::int64_t{4}) == -1 && order("3.5", std::int64_t{3}) == 1 && order("2", 2.0) == 0 &&
        order("true", std::int64_t{1}) == 0);
  CHECK(order("NaN", 1.0) == 2 && order("1", std::nan("")) == 2);
  CHECK(!order("\"a\"", std::int64_t{1}) && order("\"a\"", std::int64_t{1}, false) == 2 && order("null", 1.0, false) == 2);
  CHECK(!order("9007199254740993", 9007199254740992.0) && !order("1.5", std::int64_t{9007199254740993}));
  CHECK(!order("[1", std::int64_t{1}, false));
}

TEST(what_counts_and_what_is_true) {
  CHECK_EQ(asked(rel_json_length, R"({"a": 1, "\u0061": 2, "b": 3})"), Whole(2));
  CHECK_EQ(asked(rel_json_length, "\"\\u20acb\u00e9\""), Whole(3));
  CHECK(asked(rel_json_length, "[]") == 0 && !asked(rel_json_length, "1") && !asked(rel_json_length, "null"));
  for (const std::string_view yes : {"1", "-0.5", "true", "[0]", "{\"a\":0}", "\" \"", "NaN"})
    CHECK_EQ(asked(rel_json_is_true, yes), Whole(1));
  for (const std::string_view no : {"0", "-0", "0.0", "false", "null", "[]", "{}", "\"\""}) CHECK_EQ(asked(rel_json_is_true, no), Whole(0));
  CHECK_EQ(asked(rel_json_contains, R"(["a", 1, "\u0062"])", "b"), Whole(1));
  CHECK_EQ(asked(rel_json_contains, R"([["a"], "c"])", "a"), Whole(0));
  CHECK(asked(rel_json_contains, R"({"a": 1})", "a") == kWord && !asked(rel_json_contains, "\"a\"", "a"));
  CHECK(asked(rel_json_is_null, " null ") == kWord && asked(rel_json_is_null, "nulls") == 0 && asked(rel_json_is_null, "") == 0);
}

TEST(an_int_that_a_float_does_not_hold_is_refused_where_it_has_to) {
  CHECK_EQ(float_of("9007199254740993"), 9007199254740992.0);
  CHECK_EQ(same_float_of("9007199254740993"), 12345.0);
  CHECK_EQ(same_float_of("-9007199254740993"), 12345.0);
  CHECK_EQ(same_float_of("9223372036854775807"), 12345.0);
  CHECK_EQ(same_float_of("9007199254740994"), 9007199254740994.0);
  CHECK_EQ(same_float_of("-3"), -3.0);
  CHECK_EQ(same_float_of("9007199254740993.0"), 9007199254740992.0);
  CHECK_EQ(same_float_of("true"), 12345.0);
}

REL_TEST_MAIN
