// rayelastic._native.Schema: the layout of a record, as the graph layer declared it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "record/record_codec.hpp"
#include "wrappers.hpp"

namespace rayelastic::python {

namespace {

// In the order of Type; the values of graph.DataType.
constexpr std::array<std::string_view, 22> kTypeNames = {
    "bool",    "int8",   "int16",  "int32",  "int64",  "uint8",     "uint16",   "uint32", "uint64", "float16",    "float32",
    "float64", "date32", "date64", "time32", "time64", "timestamp", "duration", "string", "binary", "decimal128", "uuid"};

Type type_named(const std::string& name, const std::string& field) {
  const auto found = std::ranges::find(kTypeNames, name);
  if (found == kTypeNames.end()) throw std::invalid_argument("field '" + field + "' has type '" + name + "', which a record can't hold");
  return static_cast<Type>(found - kTypeNames.begin());
}

using FieldTuple = std::tuple<std::string, std::string, bool, std::string>;

// `known`: of each field what ValueCodec knows of it; nothing if all are plain.
std::shared_ptr<const Schema> make_schema(const std::vector<FieldTuple>& declared, const std::vector<nb::object>& known) {
  std::vector<Field> fields;
  fields.reserve(declared.size());
  for (const auto& [name, type, nullable, format] : declared) {
    fields.push_back(Field{.name = name, .type = type_named(type, name), .nullable = nullable, .format = format});
    const std::size_t index = fields.size() - 1;
    if (index < known.size() && !known[index].is_none())
      fields.back().known = std::make_shared<const ObjectRef>(ObjectRef::share(known[index].ptr()));
    if (type_of_format(format, name) != fields.back().type) {
      throw std::invalid_argument("field '" + name + "' has type '" + type + "', but its Arrow format '" + format + "' says another");
    }
  }
  return std::make_shared<const Schema>(std::move(fields));
}

struct RecordCheck {
  std::unique_ptr<RecordCodec> codec;
  EncodedRecords encoded;
};

}  // namespace

void bind_schema(nb::module_& module) {
  nb::class_<SchemaObject>(module, "Schema",
                           "The layout of a record: fields in order, natural alignment, then validity bits, size a multiple of 8.")
      .def(
          "__init__",
          [](SchemaObject* self, const std::vector<FieldTuple>& fields, const std::vector<nb::object>& known) {
            new (self) SchemaObject{make_schema(fields, known)};
          },
          nb::arg("fields"), nb::arg("known") = std::vector<nb::object>(),
          "Fields as (name, type, nullable, format), and what Python knows of their values. ValueError for a duplicate name or an unknown "
          "type.")
      .def_prop_ro(
          "record_size", [](const SchemaObject& self) { return self.schema->record_size(); }, "Bytes of a record.")
      .def_prop_ro(
          "validity_offset", [](const SchemaObject& self) { return self.schema->validity_offset(); }, "Where the validity bits start.")
      .def_prop_ro(
          "offsets",
          [](const SchemaObject& self) {
            std::vector<std::size_t> offsets;
            for (const Field& field : self.schema->fields()) offsets.push_back(field.offset);
            return offsets;
          },
          "Byte offset of each field.")
      .def_prop_ro(
          "fields",
          [](const SchemaObject& self) {
            std::vector<FieldTuple> fields;
            for (const Field& field : self.schema->fields()) {
              fields.emplace_back(field.name, std::string(kTypeNames[static_cast<std::size_t>(field.type)]), field.nullable, field.format);
            }
            return fields;
          },
          "What the schema was made of.");
  nb::class_<RecordCheck>(module, "RecordCheck", "Tells whether values can be records of a schema.")
      .def(
          "__init__",
          [](RecordCheck* self, std::string name, const SchemaObject& schema) {
            new (self) RecordCheck{std::make_unique<RecordCodec>(std::move(name), schema.schema, nullptr), {}};
          },
          nb::arg("operator"), nb::arg("schema"))
      .def(
          "__call__",
          [](RecordCheck& self, nb::object value) {
            self.encoded.clear();
            if (!self.codec->encode_one(value.ptr(), self.encoded)) throw nb::python_error();
          },
          nb::arg("value"), nb::sig("def __call__(self, value: object) -> None"), "TypeError, ValueError: it can't.");
}

}  // namespace rayelastic::python
