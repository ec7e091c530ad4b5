// Records to the user's tuples and back, for operators that run in Python (architecture section 4, python lane).
//
// Everything that touches a PyObject needs the GIL and says so.
// Knows nothing of operators but the name that its errors carry; nothing of threads.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/schema.hpp"
#include "record/encoded_records.hpp"
#include "record/object_ref.hpp"
#include "values/value_codec.hpp"

namespace rayelastic::python {

class RecordCodec {
 public:
  // GIL. `tuple_type` is a subclass of tuple with as many fields as the schema (its __new__ isn't called, as with
  // namedtuple._make), or null for plain tuples. Throws std::invalid_argument.
  RecordCodec(std::string operator_name, std::shared_ptr<const Schema> schema, PyObject* tuple_type);
  ~RecordCodec();  // GIL
  RecordCodec(const RecordCodec&) = delete;
  RecordCodec& operator=(const RecordCodec&) = delete;

  [[nodiscard]] const Schema& schema() const noexcept { return *schema_; }
  [[nodiscard]] const std::shared_ptr<const Schema>& shared_schema() const noexcept { return schema_; }

  // GIL. A new list of `count` tuples, or null with a Python error set.
  [[nodiscard]] PyObject* decode(const std::byte* records, std::size_t count, std::size_t stride) const;
  // GIL. One new tuple, or null with a Python error set.
  [[nodiscard]] PyObject* decode_one(const std::byte* record) const;

  // GIL. Appends one record: a tuple with the schema's fields; a dict or an instance of a class of records
  // (rayelastic/graph/records/record_classes.py) that has them by name, where the schema isn't one field that holds such values; or, for a
  // schema of one field, the value itself. False with a Python error set that names operator, field and value.
  [[nodiscard]] bool encode_one(PyObject* value, EncodedRecords& out) const;

 private:
  struct FieldFormat {
    std::size_t offset;
    std::int32_t validity;
    Type type;
    ValueCodec codec;
  };

  [[nodiscard]] ObjectRef named_values(PyObject* value) const;
  [[nodiscard]] bool encode_named(PyObject* values, std::size_t record, EncodedRecords& out) const;
  [[nodiscard]] std::string field_names() const;
  [[nodiscard]] PyObject* decode_field(const std::byte* record, const FieldFormat& field) const;
  [[nodiscard]] bool encode_field(PyObject* value, std::size_t index, std::size_t record, EncodedRecords& out) const;
  [[nodiscard]] bool encode_text(PyObject* value, std::size_t index, std::size_t record, EncodedRecords& out, Refusal& refusal) const;
  bool complain(std::size_t index, const Refusal& refusal) const;

  std::string operator_;
  std::shared_ptr<const Schema> schema_;
  std::vector<FieldFormat> fields_;
  std::vector<ObjectRef> names_;       // of the fields, interned
  mutable ObjectRef last_value_type_;  // the class of the last instance that was a value, not a record
  PyTypeObject* tuple_type_;
  bool untrack_;  // no instance can be part of a cycle: spare the collector the look
};

}  // namespace rayelastic::python
