// Arrow's temporal integers to Python's datetime objects and back. Precision is never dropped silently: what a
// datetime can't hold (nanoseconds), or a field's unit can't, is an error.
// Every function here is called holding the GIL. Knows nothing of records.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

#include "rayelastic/record/schema.hpp"

namespace rayelastic::python {

// How one temporal field converts; made once per codec.
struct TemporalFormat {
  std::int64_t per_second = 1;  // units in a second: 1, 1'000, 1'000'000 or 1'000'000'000
  PyObject* zone = nullptr;     // borrowed tzinfo of a zoned timestamp; null: naive
  bool is_utc = false;
};

// Reads the unit of `format`; sets a Python error and returns false if the zone is unknown. `*zone` gets a new reference or null.
[[nodiscard]] bool parse_temporal(Type type, const std::string& format, TemporalFormat* parsed, PyObject** zone);

// New reference, or null with a Python error set.
[[nodiscard]] PyObject* temporal_to_python(Type type, const TemporalFormat& format, std::int64_t value);

// Why a value wasn't accepted; the caller words it with operator and field.
enum class TemporalError : std::uint8_t { None, WrongType, NeedsZone, UnwantedZone, LosesPrecision, OutOfRange, Raised };

[[nodiscard]] TemporalError temporal_from_python(Type type, const TemporalFormat& format, PyObject* value, std::int64_t* out);

// What a field of this type wants to be given, in words: "datetime", "date", ...
[[nodiscard]] const char* temporal_name(Type type) noexcept;

}  // namespace rayelastic::python
