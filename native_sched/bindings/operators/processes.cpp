// rayelastic._native.Operator: compiled classes with timers of keys.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "operators/explanation.hpp"
#include "rayelastic/operators/time/process.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

// Addresses of on_tuple, on_time and on_end; 0 for none.
using Methods = std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t>;
// A state record: that of a new key, where string views are in it, and which of them have bytes.
using State = std::tuple<nb::bytes, std::vector<std::size_t>, std::vector<std::size_t>>;
// A field, and ticks to be added to it.
using Time = std::tuple<std::string, std::int64_t>;
// Ticks, and whether they are since the first record of a key.
using Ttl = std::tuple<std::int64_t, bool>;
// Why on_tuple failed on a tuple, and the other methods on a moment.
using Explained = std::tuple<nb::object, nb::object>;

rel_process method_at(std::uintptr_t address) { return reinterpret_cast<rel_process>(address); }

std::int64_t microseconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

OperatorObject process(std::string name, const SchemaObject& input, const SchemaObject& output, const SchemaObject& moment,
                       const std::vector<std::string>& keys, const Methods& methods, const State& state, const std::optional<Time>& time,
                       double ticks_per_second, const Explained& explained, nb::object owner, const Ttl& ttl) {
  const auto& [initial, texts, binary] = state;
  ProcessOptions options;
  const auto* first = static_cast<const std::byte*>(initial.data());
  options.initial.assign(first, first + initial.size());
  options.texts = texts;
  for (const std::size_t offset : texts) {
    if (offset % alignof(StringView) != 0 || offset + sizeof(StringView) > initial.size())
      throw std::invalid_argument("operator '" + name + "': a text field lies outside of the state record");
    options.checks.push_back(check_of_texts(std::ranges::find(binary, offset) == binary.end() ? Type::String : Type::Binary));
  }
  options.ticks_per_second = ticks_per_second;
  if (time.has_value()) {
    options.time = std::get<0>(*time), options.shift = std::get<1>(*time);
  } else {
    options.now = microseconds_since_1970;
  }
  std::tie(options.ttl, options.since_first) = ttl;
  options.why_tuple = explanation(name, input.schema, std::get<0>(explained));
  options.why_moment = explanation(name, moment.schema, std::get<1>(explained));
  const ProcessMethods called{method_at(std::get<0>(methods)), method_at(std::get<1>(methods)), method_at(std::get<2>(methods))};
  auto kept = std::make_shared<ObjectRef>(ObjectRef::share(owner.ptr()));
  return {
      .op = make_process(std::move(name), {input.schema, output.schema, moment.schema}, keys, called, std::move(options), std::move(kept))};
}

}  // namespace

void bind_processes() {
  nb::borrow<nb::class_<OperatorObject>>(nb::type<OperatorObject>())
      .def_static(
          "process", process, nb::arg("name"), nb::arg("input"), nb::arg("output"), nb::arg("moment"), nb::arg("keys"), nb::arg("methods"),
          nb::arg("state"), nb::arg("time").none(), nb::arg("ticks_per_second"), nb::arg("explained"), nb::arg("owner"),
          nb::arg("ttl") = Ttl(0, false),
          nb::sig("def process(name: str, input: Schema, output: Schema, moment: Schema, keys: collections.abc.Sequence[str], methods: "
                  "tuple[int, int, int], state: tuple[bytes, collections.abc.Sequence[int], collections.abc.Sequence[int]], time: "
                  "tuple[str, int] | None, ticks_per_second: float, explained: tuple[typing.Any, typing.Any], owner: object, ttl: "
                  "tuple[int, bool] = (0, False)) -> Operator"),
          "A class with timers of keys. methods: addresses of on_tuple, on_time and on_end, 0 for none; state: the record of a new key, "
          "where string\nviews are in it, and which of these have bytes; time: the field of the event time and ticks to be added, None by "
          "the clock; moment: the keys,\nthen the time, which on_time and on_end get; explained: of a tuple, and of a moment, why a method "
          "failed on it; ttl: ticks after\nwhich a key is forgotten, 0 for never, and whether since its first record.");
}

}  // namespace rayelastic::python
