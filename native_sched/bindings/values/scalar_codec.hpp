// One value that isn't made of others, between Python and its bytes: numbers, texts, times, decimals, UUIDs.
//
// Everything here needs the GIL. Knows nothing of records.
#pragma once

#include <Python.h>

#include <cstddef>
#include <string>

#include "rayelastic/record/schema.hpp"
#include "record/object_ref.hpp"
#include "record/temporal.hpp"

namespace rayelastic::python {

// Why a value wasn't taken; whoever asked words it with operator and field.
struct Refusal {
  enum class Kind { None, Wrong, Refused, Raised };  // another type; a value, with the reason; a Python error is set

  Kind kind = Kind::None;
  ObjectRef value;
  std::string wanted;  // the type, if it is another
  std::string reason;
  std::string path;  // inside the value, such as `[3].price`

  bool wrong(PyObject* given, std::string type);
  bool refused(PyObject* given, std::string why);
  bool raised();
};

// The bytes of a str, or of anything with a buffer.
class GivenBytes {
 public:
  GivenBytes() noexcept = default;
  ~GivenBytes() {
    if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
  }
  GivenBytes(const GivenBytes&) = delete;
  GivenBytes& operator=(const GivenBytes&) = delete;

  const char* data = nullptr;
  std::size_t size = 0;

 private:
  friend class ScalarCodec;
  Py_buffer buffer_{};
};

class ScalarCodec {
 public:
  // Throws std::invalid_argument: its time zone is unknown.
  ScalarCodec(Type type, const std::string& format);

  // A new reference, or null with a Python error set. Of fixed width.
  [[nodiscard]] PyObject* decode(const std::byte* at) const;
  [[nodiscard]] bool encode(PyObject* value, std::byte* to, Refusal& refusal) const;
  // Of variable width.
  [[nodiscard]] PyObject* decode(const char* data, std::size_t size) const;
  [[nodiscard]] bool bytes_of(PyObject* value, GivenBytes& given, Refusal& refusal) const;

 private:
  bool encode_integer(PyObject* value, std::byte* to, Refusal& refusal) const;
  bool encode_float(PyObject* value, std::byte* to, Refusal& refusal) const;
  bool encode_temporal(PyObject* value, std::byte* to, Refusal& refusal) const;
  bool encode_decimal(PyObject* value, std::byte* to, Refusal& refusal) const;
  bool encode_uuid(PyObject* value, std::byte* to, Refusal& refusal) const;
  [[nodiscard]] PyObject* decode_decimal(const std::byte* at) const;
  [[nodiscard]] PyObject* decode_uuid(const std::byte* at) const;

  Type type_;
  TemporalFormat temporal_;
  ObjectRef zone_;
  ObjectRef class_;  // decimal.Decimal, uuid.UUID
  int precision_ = 0;
  int scale_ = 0;
};

}  // namespace rayelastic::python
