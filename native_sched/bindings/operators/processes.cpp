// rayelastic._native.Operator: compiled classes with timers of keys.
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
// The field of the event time (empty: by the clock) and ticks to be added to it; the ticks of a second; after how many ticks a key is forgotten
// (0: never), and whether since its first record.
using Times = std::tuple<std::string, std::int64_t, double, std::int64_t, bool>;
// Why on_tuple failed on a tuple, and the other methods on a moment.
using Explained = std::tuple<nb::object, nb::object>;

rel_process method_at(std::uintptr_t address) { return reinterpret_cast<rel_process>(address); }

std::int64_t microseconds_since_1970() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

OperatorObject process(std::string name, const std::tuple<SchemaObject, SchemaObject, SchemaObject>& schemas,
                       const std::vector<std::string>& keys, const Methods& methods, const State& state, const Times& times,
                       const Explained& explained, nb::object owner) {
  const auto& [input, output, moment] = schemas;
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
  std::tie(options.time, options.shift, options.ticks_per_second, options.ttl, options.since_first) = times;
  if (options.time.empty()) options.now = microseconds_since_1970;
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
          "process", process, nb::arg("name"), nb::arg("schemas"), nb::arg("keys"), nb::arg("methods"), nb::arg("state"), nb::arg("times"),
          nb::arg("explained"), nb::arg("owner"),
          nb::sig("def process(name: str, schemas: tuple[Schema, Schema, Schema], keys: collections.abc.Sequence[str], methods: "
                  "tuple[int, int, int], state: tuple[bytes, collections.abc.Sequence[int], collections.abc.Sequence[int]], times: "
                  "tuple[str, int, float, int, bool], explained: tuple[typing.Any, typing.Any], owner: object) -> Operator"),
          "A class with timers of keys. schemas: of the input, the output, and a moment, which on_time and on_end get: the keys, then the "
          "time.\nmethods: addresses of on_tuple, on_time and on_end, 0 for none; state: the record of a new key, where string views are "
          "in "
          "it, and\nwhich of these have bytes; times: the field of the event time ('' by the clock) and ticks to be added, the ticks of a "
          "second, ticks\nafter which a key is forgotten (0: never), and whether since its first record; explained: of a tuple, and of a "
          "moment, why a method\nfailed on it.");
}

}  // namespace rayelastic::python
