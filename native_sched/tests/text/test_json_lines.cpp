// What of lines of JSON another parser may see, and which numbers it would change.
#include <cstdint>
#include <string>
#include <string_view>

#include "check.hpp"
#include "rayelastic/text/json_lines.h"

namespace {

constexpr std::int64_t kDeepest = 60;

bool are_objects(std::string_view text) { return rel_json_are_objects(text.data(), static_cast<std::int64_t>(text.size()), kDeepest) != 0; }

bool has_long_whole(std::string_view text, std::string_view names) {
  return rel_json_has_long_whole(text.data(), static_cast<std::int64_t>(text.size()), names.data(),
                                 static_cast<std::int64_t>(names.size())) != 0;
}

std::string nested(std::size_t levels) { return R"({"a":)" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}"; }

}  // namespace

TEST(an_object_a_line_is_safe) {
  for (const std::string_view text : {"", "\n", " \t\r\n", R"({})", "{\"a\":1}\n{\"b\":[{}, {} ] }\r\n\n", "\t{\"\xc3\xa9\":{\"x\":{}}} "})
    CHECK(are_objects(text));
}

TEST(anything_else_is_not) {
  for (const std::string_view text : {"null", "{\"a\":1}\nnull\n", R"({"a":1} null {"b":1})", R"({"a":1}{"b":1})", "[1]", "1", "{", "}",
                                      "{\"a\":\n1}", "{\"a\":\"\xff\"}", "\xef\xbb\xbf{}"})
    CHECK(!are_objects(text));
}

TEST(depth_has_a_limit) {
  CHECK(are_objects(nested(kDeepest)));
  CHECK(!are_objects(nested(kDeepest + 1)));
  CHECK(!are_objects("{}\n" + nested(20'000) + "\n{}"));
}

TEST(long_whole_numbers_are_found_behind_their_names) {
  for (std::size_t before = 0; before < 40; ++before) {  // wherever the number begins
    const std::string line = std::string(before, ' ') + R"({"x" : -9007199254740993})";
    CHECK(has_long_whole(line, "x"));
    CHECK(has_long_whole(line, "y\nx"));
    CHECK(!has_long_whole(line, "y"));
  }
  CHECK(has_long_whole(R"({"y":[1.5,9007199254740993]})", "x\n"));
  CHECK(!has_long_whole(R"({"y":[1.5,9007199254740993]})", "x"));
  CHECK(has_long_whole(R"({"\u0078":9007199254740993})", "x"));  // perhaps
  for (const std::string_view text : {R"({"x":0.30000000000000004})", R"({"x":123456789012345})", R"({"x":9007199254740993.5})",
                                      R"({"x":9007199254740993e1})", R"({"x":"9007199254740993"})", "9007199254740993", ""})
    CHECK(!has_long_whole(text, "x"));
}

REL_TEST_MAIN
