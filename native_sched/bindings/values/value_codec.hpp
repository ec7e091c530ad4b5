// Any value of a field between Python and its bytes (value_form.hpp): scalars, enums, lists, tuples, named tuples, dataclasses, dicts, and what
// functions of Python's turn into bytes or text (objects, JSON).
//
// What Python knows of a form (rayelastic/graph/records/forms.py gives it): None for a plain one; of an enum its members; of a list
// (list or tuple, its items'); of a struct (class, whether that is a tuple class, its fields'); of a map (its keys', its values'); of an object and
// of JSON (from bytes or text, to bytes or text).
//
// Everything here needs the GIL.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

#include "rayelastic/record/value_form.hpp"
#include "record/object_ref.hpp"
#include "values/scalar_codec.hpp"

namespace rayelastic::python {

class ValueCodec {
 public:
  // Throws std::invalid_argument.
  ValueCodec(ValueForm form, PyObject* known);

  [[nodiscard]] bool is_variable() const noexcept { return form_.is_variable(); }
  [[nodiscard]] const ScalarCodec& scalar() const noexcept { return scalar_; }
  [[nodiscard]] bool is_plain() const noexcept { return form_.kind == ValueForm::Kind::Plain; }

  // Whether a dict or an instance may be one of its values.
  [[nodiscard]] bool holds_named_values() const noexcept {
    using Kind = ValueForm::Kind;
    return form_.kind == Kind::Struct || form_.kind == Kind::Map || form_.kind == Kind::Object || form_.kind == Kind::Json;
  }

  // A new reference, or null with a Python error set.
  [[nodiscard]] PyObject* decode(ValueBytes bytes) const;
  // False: see the refusal. A value of fixed width...
  [[nodiscard]] bool put(PyObject* value, std::byte* to, Refusal& refusal) const;
  // ...and of variable width.
  [[nodiscard]] bool append(PyObject* value, std::string& out, Refusal& refusal) const;

 private:
  [[nodiscard]] PyObject* decode_list(ValueBytes bytes) const;
  [[nodiscard]] PyObject* decode_struct(ValueBytes bytes) const;
  [[nodiscard]] PyObject* decode_map(ValueBytes bytes) const;
  [[nodiscard]] PyObject* decode_enum(ValueBytes bytes) const;
  [[nodiscard]] PyObject* decode_made(ValueBytes bytes) const;
  bool append_list(PyObject* value, std::string& out, Refusal& refusal) const;
  bool append_struct(PyObject* value, std::string& out, Refusal& refusal) const;
  bool append_map(PyObject* value, std::string& out, Refusal& refusal) const;
  bool append_made(PyObject* value, std::string& out, Refusal& refusal) const;
  // One item of a list, field of a struct, key or value of a map.
  bool give(PyObject* value, ValueWriter& writer, std::string& out, Refusal& refusal) const;
  [[nodiscard]] ObjectRef field_of(PyObject* value, std::size_t index, Refusal& refusal) const;

  ValueForm form_;
  ScalarCodec scalar_;
  ObjectRef known_;
  ObjectRef numbers_;  // of an enum's members
  std::vector<ValueCodec> children_;
};

}  // namespace rayelastic::python
