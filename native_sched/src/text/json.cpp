// json.h. What a text is asked for is found by reading all of it (json_reader.hpp).
#include "rayelastic/text/json.h"

#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "text/json_reader.hpp"
#include "text/text_service.hpp"

using namespace rayelastic::text;
using namespace rayelastic::json;

namespace {

constexpr std::int64_t kExact = std::int64_t{1} << 53;  // up to here each int is a double

struct Number {
  bool is_int = false;
  std::int64_t whole = 0;
  double real = 0;
};

std::optional<Number> number_of(const Value& value) noexcept {
  const std::string_view text = value.literal;
  Number number;
  if (value.kind == Kind::Bool) return Number{true, text == "true" ? 1 : 0, 0};
  if (value.kind != Kind::Number) return std::nullopt;
  const char* end = text.data() + text.size();
  number.is_int = text.find_first_of(".eENI") == std::string_view::npos;
  const std::from_chars_result read =
      number.is_int ? std::from_chars(text.data(), end, number.whole) : std::from_chars(text.data(), end, number.real);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;  // beyond the range: CPython knows
  return number;
}

std::int64_t order(auto one, decltype(one) other) noexcept { return one < other ? -1 : one > other ? 1 : one == other ? 0 : 2; }

bool is_exact(std::int64_t whole) noexcept { return whole >= -kExact && whole <= kExact; }

// The order of a number and another one; none if it can't be told here.
std::optional<std::int64_t> ordered(const Number& number, std::int64_t other) noexcept {
  if (number.is_int) return order(number.whole, other);
  return is_exact(other) ? std::optional(order(number.real, static_cast<double>(other))) : std::nullopt;
}

std::optional<std::int64_t> ordered(const Number& number, double other) noexcept {
  if (!number.is_int) return order(number.real, other);
  return is_exact(number.whole) ? std::optional(order(static_cast<double>(number.whole), other)) : std::nullopt;
}

template <typename Body>
std::int32_t answered(Body&& body) noexcept {
  try {
    return body() ? REL_TEXT_OK : REL_TEXT_REFUSED;
  } catch (...) {  // of std::string and std::set alone
    return REL_TEXT_NO_MEMORY;
  }
}

std::int32_t order_of(const rel_text* json, auto other, std::int64_t is_ordered, std::int64_t* value) noexcept {
  return answered([&] {
    const Value found = read(json);
    if (found.kind == Kind::None) return false;
    if (found.kind != Kind::Number && found.kind != Kind::Bool) {
      *value = 2;
      return is_ordered == 0;
    }
    const std::optional<Number> number = number_of(found);
    const std::optional<std::int64_t> known = number.has_value() ? ordered(*number, other) : std::nullopt;
    *value = known.value_or(2);
    return known.has_value();
  });
}

}  // namespace

extern "C" {

int32_t rel_json_is_null(const rel_text* json, int64_t* value) {
  Cursor text(seen(json));
  text.skip_space();
  const bool begins = text.take(kNull);
  text.skip_space();
  *value = begins && text.is_done() ? 1 : 0;
  return REL_TEXT_OK;
}

int32_t rel_json_member(const rel_text_room* /*room*/, const rel_text* json, const rel_text* key, int64_t required, rel_text* made) {
  return answered([&] {
    std::optional<std::string_view> found;
    const auto look = [&](const Quoted& name, std::string_view value) {
      if (is_text(name, seen(key))) found = value;
    };
    if (read(json, look, kNoElement).kind != Kind::Object || (!found.has_value() && required != 0)) return false;
    *made = given(found.value_or(kNull));
    return true;
  });
}

int32_t rel_json_element(const rel_text_room* /*room*/, const rel_text* json, int64_t index, rel_text* made) {
  return answered([&] {
    std::int64_t wanted = index, at = 0;
    if (index < 0) {
      const auto count = [&](std::string_view) { ++wanted; };
      if (read(json, kNoMember, count).kind != Kind::List || wanted < 0) return false;
    }
    std::optional<std::string_view> found;
    const auto look = [&](std::string_view value) {
      if (at++ == wanted) found = value;
    };
    if (read(json, kNoMember, look).kind != Kind::List || !found.has_value()) return false;
    *made = given(*found);
    return true;
  });
}

int32_t rel_json_contains(const rel_text* json, const rel_text* text, int64_t* value) {
  return answered([&] {
    bool found = false;
    const auto key = [&](const Quoted& name, std::string_view) { found = found || is_text(name, seen(text)); };
    const auto element = [&](std::string_view one) {
      const rel_text inner = given(one);
      const Value read_one = one.starts_with('"') ? read(&inner) : Value{};
      found = found || (read_one.kind == Kind::Text && is_text(read_one.quoted, seen(text)));
    };
    const Kind kind = read(json, key, element).kind;
    *value = found ? 1 : 0;
    return kind == Kind::Object || kind == Kind::List;
  });
}

int32_t rel_json_length(const rel_text* json, int64_t* value) {
  return answered([&] {
    std::set<std::string, std::less<>> keys;
    std::int64_t elements = 0;
    bool has_texts = true;
    const auto key = [&](const Quoted& name, std::string_view) {
      std::optional<std::string> made = name.has_escapes ? decoded(name.inner) : std::string(name.inner);
      has_texts = has_texts && made.has_value();
      if (made.has_value()) keys.insert(std::move(*made));
    };
    const Value found = read(json, key, [&](std::string_view) { ++elements; });
    if (found.kind == Kind::Text) {
      const std::optional<std::string> made = decoded(found.quoted.inner);
      has_texts = made.has_value();
      elements = has_texts ? length(*made, false) : 0;
    }
    *value = found.kind == Kind::Object ? static_cast<std::int64_t>(keys.size()) : elements;
    return has_texts && (found.kind == Kind::Object || found.kind == Kind::List || found.kind == Kind::Text);
  });
}

int32_t rel_json_is_true(const rel_text* json, int64_t* value) {
  return answered([&] {
    bool has_parts = false;
    const Value found = read(json, [&](const Quoted&, std::string_view) { has_parts = true; }, [&](std::string_view) { has_parts = true; });
    const std::optional<Number> number = number_of(found);
    if (found.kind == Kind::None || (found.kind == Kind::Number && !number.has_value())) return false;
    const bool is_other = has_parts || (found.kind == Kind::Text && !found.quoted.inner.empty());
    *value = (number.has_value() ? number->whole != 0 || number->real != 0 : is_other) ? 1 : 0;
    return true;
  });
}

int32_t rel_json_to_int(const rel_text* json, int64_t* value) {
  return answered([&] {
    const Value found = read(json);
    const std::optional<Number> number = number_of(found);
    if (found.kind != Kind::Number || !number.has_value() || !number->is_int) return false;
    *value = number->whole;
    return true;
  });
}

int32_t rel_json_to_float(const rel_text* json, double* value) {
  return answered([&] {
    const Value found = read(json);
    const std::optional<Number> number = number_of(found);
    if (found.kind != Kind::Number || !number.has_value()) return false;
    *value = number->is_int ? static_cast<double>(number->whole) : number->real;
    return true;
  });
}

int32_t rel_json_to_same_float(const rel_text* json, double* value) {
  int64_t whole = 0;
  const int32_t status = rel_json_to_float(json, value);
  if (status != REL_TEXT_OK || rel_json_to_int(json, &whole) != REL_TEXT_OK) return status;
  return *value < 0x1p63 && static_cast<int64_t>(*value) == whole ? status : REL_TEXT_REFUSED;
}

int32_t rel_json_to_bool(const rel_text* json, int64_t* value) {
  return answered([&] {
    const Value found = read(json);
    *value = found.literal == "true" ? 1 : 0;
    return found.kind == Kind::Bool;
  });
}

int32_t rel_json_to_text(const rel_text_room* room, const rel_text* json, rel_text* made) {
  bool has_room = true;
  const int32_t status = answered([&] {
    const Value found = read(json);
    if (found.kind != Kind::Text) return false;
    *made = given(found.quoted.inner);
    if (!found.quoted.has_escapes) return true;
    const std::optional<std::string> text = decoded(found.quoted.inner);
    if (!text.has_value()) return false;
    char* const out = memory(room, static_cast<std::int64_t>(text->size()));
    has_room = out != nullptr;
    if (has_room) *made = {out, put(*text, out) - out};
    return has_room;
  });
  return has_room ? status : REL_TEXT_NO_MEMORY;
}

int32_t rel_json_is_text(const rel_text* json, const rel_text* text, int64_t* value) {
  return answered([&] {
    const Value found = read(json);
    *value = found.kind == Kind::Text && is_text(found.quoted, seen(text)) ? 1 : 0;
    return found.kind != Kind::None;
  });
}

int32_t rel_json_order_int(const rel_text* json, int64_t other, int64_t ordered, int64_t* value) {
  return order_of(json, other, ordered, value);
}

int32_t rel_json_order_float(const rel_text* json, double other, int64_t ordered, int64_t* value) {
  return order_of(json, other, ordered, value);
}

}  // extern "C"
