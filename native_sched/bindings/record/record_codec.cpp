#include "record/record_codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "rayelastic/record/string_view.hpp"
#include "record/bytes.hpp"

namespace rayelastic::python {

namespace {

constexpr std::size_t kShownCharacters = 80;  // of a value's repr in an error

bool is_temporal(Type type) noexcept { return type >= Type::Date32 && type <= Type::Duration; }

const char* wanted(Type type) noexcept {
  switch (type) {
    case Type::Bool:
      return "bool";
    case Type::Float16:
    case Type::Float32:
    case Type::Float64:
      return "float";
    case Type::String:
      return "str";
    case Type::Binary:
      return "bytes";
    default:
      return is_temporal(type) ? temporal_name(type) : "int";
  }
}

std::string shown(PyObject* value) {
  PyObject* text = PyObject_Repr(value);
  const char* characters = text != nullptr ? PyUnicode_AsUTF8(text) : nullptr;
  std::string result = characters != nullptr ? characters : "<no repr>";
  PyErr_Clear();
  Py_XDECREF(text);
  if (result.size() > kShownCharacters) {
    std::size_t end = kShownCharacters;
    while (end > 0 && (static_cast<unsigned char>(result[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
    result = result.substr(0, end) + "...";
  }
  return result;
}

bool is_numpy_bool(PyObject* value) noexcept {
  const char* name = Py_TYPE(value)->tp_name;
  return std::strcmp(name, "numpy.bool") == 0 || std::strcmp(name, "numpy.bool_") == 0;
}

}  // namespace

RecordCodec::RecordCodec(std::string operator_name, std::shared_ptr<const Schema> schema, PyObject* tuple_type)
    : operator_(std::move(operator_name)), schema_(std::move(schema)), tuple_type_(&PyTuple_Type) {
  if (tuple_type != nullptr && tuple_type != Py_None) {
    if (!PyType_Check(tuple_type) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(tuple_type), &PyTuple_Type)) {
      throw std::invalid_argument("operator '" + operator_ + "': tuple_type must be a NamedTuple class or None, got " + shown(tuple_type));
    }
    tuple_type_ = reinterpret_cast<PyTypeObject*>(tuple_type);
  }
  for (const Field& field : schema_->fields()) {
    FieldFormat& format = fields_.emplace_back(FieldFormat{field.type, field.offset, field.validity, {}});
    PyObject* zone = nullptr;
    if (is_temporal(field.type) && !parse_temporal(field.type, field.format, &format.temporal, &zone)) {
      PyErr_Clear();
      for (PyObject* known : zones_) Py_DECREF(known);
      throw std::invalid_argument("operator '" + operator_ + "', field '" + field.name + "': time zone of '" + field.format +
                                  "' is unknown here (is tzdata installed?)");
    }
    if (zone != nullptr) zones_.push_back(zone);
  }
  Py_INCREF(tuple_type_);
  untrack_ = tuple_type_ == &PyTuple_Type || tuple_type_->tp_dictoffset == 0;
}

RecordCodec::~RecordCodec() {
  Py_DECREF(tuple_type_);
  for (PyObject* zone : zones_) Py_DECREF(zone);
}

PyObject* RecordCodec::decode(const std::byte* records, std::size_t count, std::size_t stride) const {
  PyObject* list = PyList_New(static_cast<Py_ssize_t>(count));
  if (list == nullptr) return nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    PyObject* tuple = decode_one(records + i * stride);
    if (tuple == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), tuple);
  }
  return list;
}

PyObject* RecordCodec::decode_one(const std::byte* record) const {
  const auto size = static_cast<Py_ssize_t>(fields_.size());
  PyObject* tuple = tuple_type_ == &PyTuple_Type ? PyTuple_New(size) : tuple_type_->tp_alloc(tuple_type_, size);
  if (tuple == nullptr) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* value = decode_field(record, fields_[static_cast<std::size_t>(i)]);
    if (value == nullptr) {
      Py_DECREF(tuple);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple, i, value);
  }
  if (untrack_ && size > 0) PyObject_GC_UnTrack(tuple);
  return tuple;
}

PyObject* RecordCodec::decode_field(const std::byte* record, const FieldFormat& field) const {
  if (field.validity >= 0) {
    const auto bit = static_cast<std::size_t>(field.validity);
    if ((static_cast<std::uint8_t>(record[schema_->validity_offset() + bit / 8]) >> (bit % 8) & 1U) == 0) Py_RETURN_NONE;
  }
  const std::byte* at = record + field.offset;
  switch (field.type) {
    case Type::Bool:
      return PyBool_FromLong(load<std::uint8_t>(at));
    case Type::Int8:
      return PyLong_FromLong(load<std::int8_t>(at));
    case Type::Int16:
      return PyLong_FromLong(load<std::int16_t>(at));
    case Type::Int32:
      return PyLong_FromLong(load<std::int32_t>(at));
    case Type::Int64:
      return PyLong_FromLongLong(load<std::int64_t>(at));
    case Type::UInt8:
      return PyLong_FromLong(load<std::uint8_t>(at));
    case Type::UInt16:
      return PyLong_FromLong(load<std::uint16_t>(at));
    case Type::UInt32:
      return PyLong_FromUnsignedLong(load<std::uint32_t>(at));
    case Type::UInt64:
      return PyLong_FromUnsignedLongLong(load<std::uint64_t>(at));
    case Type::Float16:
      return PyFloat_FromDouble(PyFloat_Unpack2(reinterpret_cast<const char*>(at), std::endian::native == std::endian::little ? 1 : 0));
    case Type::Float32:
      return PyFloat_FromDouble(static_cast<double>(load<float>(at)));
    case Type::Float64:
      return PyFloat_FromDouble(load<double>(at));
    case Type::Date32:
    case Type::Time32:
      return temporal_to_python(field.type, field.temporal, load<std::int32_t>(at));
    case Type::Date64:
    case Type::Time64:
    case Type::Timestamp:
    case Type::Duration:
      return temporal_to_python(field.type, field.temporal, load<std::int64_t>(at));
    case Type::String: {
      const auto* text = reinterpret_cast<const StringView*>(at);
      return PyUnicode_DecodeUTF8(text->data(), static_cast<Py_ssize_t>(text->length), nullptr);
    }
    case Type::Binary: {
      const auto* bytes = reinterpret_cast<const StringView*>(at);
      return PyBytes_FromStringAndSize(bytes->data(), static_cast<Py_ssize_t>(bytes->length));
    }
  }
  return PyErr_Format(PyExc_SystemError, "unknown record type %d", static_cast<int>(field.type));
}

bool RecordCodec::encode_one(PyObject* value, EncodedRecords& out) const {
  const std::size_t record = out.records.size();
  const std::size_t text = out.text.size();
  out.records.resize(record + schema_->record_size());  // zeroed: padding and absent values are equal bytes
  const auto size = static_cast<Py_ssize_t>(fields_.size());
  bool done = true;
  if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == size) {
    for (Py_ssize_t i = 0; done && i < size; ++i) done = encode_field(PyTuple_GET_ITEM(value, i), static_cast<std::size_t>(i), record, out);
  } else if (size == 1 && !PyTuple_Check(value)) {
    done = encode_field(value, 0, record, out);
  } else {
    std::string names;
    for (const Field& field : schema_->fields()) names += (names.empty() ? "" : ", ") + field.name;
    PyErr_Format(PyExc_TypeError, "operator '%s': expected a tuple (%s), got %s", operator_.c_str(), names.c_str(), shown(value).c_str());
    done = false;
  }
  if (!done) {
    out.records.resize(record);
    out.text.resize(text);
    return false;
  }
  ++out.count;
  return true;
}

bool RecordCodec::encode_field(PyObject* value, std::size_t index, std::size_t record, EncodedRecords& out) const {
  const FieldFormat& field = fields_[index];
  std::byte* at = out.records.data() + record;
  if (value == Py_None) {
    if (field.validity >= 0) return true;  // the bit is 0 already
    return refuse(index, value, "and the field isn't nullable: declare it as '<type> | None'");
  }
  if (field.validity >= 0) {
    const auto bit = static_cast<std::size_t>(field.validity);
    at[schema_->validity_offset() + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
  }
  at += field.offset;
  switch (field.type) {
    case Type::Bool:
      if (PyBool_Check(value)) {
        store<std::uint8_t>(at, value == Py_True ? 1 : 0);
        return true;
      }
      if (!is_numpy_bool(value)) return reject(index, value);
      store<std::uint8_t>(at, PyObject_IsTrue(value) == 1 ? 1 : 0);
      return true;
    case Type::Float16:
    case Type::Float32:
    case Type::Float64: {
      const bool number = PyFloat_Check(value) || PyLong_Check(value) ||
                          (Py_TYPE(value)->tp_as_number != nullptr && Py_TYPE(value)->tp_as_number->nb_float != nullptr);
      if (!number) return reject(index, value);
      const double real = PyFloat_AsDouble(value);
      if (real == -1.0 && PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return refuse(index, value, "which doesn't fit into a float");
      }
      if (field.type == Type::Float64) {
        store(at, real);
      } else if (field.type == Type::Float32) {
        if (std::isfinite(real) && std::abs(real) > static_cast<double>(std::numeric_limits<float>::max()))
          return refuse(index, value, "which doesn't fit into float32");
        store(at, static_cast<float>(real));
      } else if (PyFloat_Pack2(real, reinterpret_cast<char*>(at), std::endian::native == std::endian::little ? 1 : 0) != 0) {
        PyErr_Clear();
        return refuse(index, value, "which doesn't fit into float16");
      }
      return true;
    }
    case Type::String:
    case Type::Binary:
      return encode_text(value, index, record, out);
    default:
      return is_temporal(field.type) ? encode_temporal(value, index, at) : encode_integer(value, index, at);
  }
}

bool RecordCodec::encode_integer(PyObject* value, std::size_t index, std::byte* to) const {
  if (!PyLong_Check(value)) {
    if (!PyIndex_Check(value)) return reject(index, value);
    PyObject* integer = PyNumber_Index(value);  // NumPy's integers
    if (integer == nullptr) {
      PyErr_Clear();
      return reject(index, value);
    }
    const bool done = encode_integer(integer, index, to);
    Py_DECREF(integer);
    return done;
  }
  const Type type = fields_[index].type;
  if (type == Type::UInt64) {
    const unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (number == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return refuse(index, value, "which doesn't fit into uint64");
    }
    store<std::uint64_t>(to, number);
    return true;
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  const auto fit = [&]<class T>(T, const char* complaint) {
    if (overflow != 0 || !std::in_range<T>(number)) return refuse(index, value, complaint);
    store(to, static_cast<T>(number));
    return true;
  };
  switch (type) {
    case Type::Int8:
      return fit(std::int8_t{}, "which doesn't fit into int8");
    case Type::Int16:
      return fit(std::int16_t{}, "which doesn't fit into int16");
    case Type::Int32:
      return fit(std::int32_t{}, "which doesn't fit into int32");
    case Type::UInt8:
      return fit(std::uint8_t{}, "which doesn't fit into uint8");
    case Type::UInt16:
      return fit(std::uint16_t{}, "which doesn't fit into uint16");
    case Type::UInt32:
      return fit(std::uint32_t{}, "which doesn't fit into uint32");
    default:
      return fit(std::int64_t{}, "which doesn't fit into int64");
  }
}

bool RecordCodec::encode_text(PyObject* value, std::size_t index, std::size_t record, EncodedRecords& out) const {
  const char* data = nullptr;
  Py_ssize_t bytes = 0;
  Py_buffer buffer{};
  if (fields_[index].type == Type::String) {
    if (!PyUnicode_Check(value)) return reject(index, value);
    data = PyUnicode_AsUTF8AndSize(value, &bytes);
    if (data == nullptr) {
      PyErr_Clear();
      return refuse(index, value, "which has a lone surrogate and can't be UTF-8");
    }
  } else if (PyBytes_Check(value)) {
    data = PyBytes_AS_STRING(value), bytes = PyBytes_GET_SIZE(value);
  } else {
    if (PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      return reject(index, value);
    }
    data = static_cast<const char*>(buffer.buf), bytes = buffer.len;
  }
  const bool fits = static_cast<std::uint64_t>(bytes) <= std::numeric_limits<std::uint32_t>::max();
  if (fits) {
    StringView view(data, static_cast<std::uint32_t>(bytes));
    if (!view.is_inline()) {
      view.pointer = reinterpret_cast<const char*>(out.text.size());  // an offset until emit
      out.text.insert(out.text.end(), data, data + bytes);
    }
    store(out.records.data() + record + fields_[index].offset, view);
  }
  if (buffer.obj != nullptr) PyBuffer_Release(&buffer);
  return fits || refuse(index, value, "which is longer than 4 GiB");
}

bool RecordCodec::encode_temporal(PyObject* value, std::size_t index, std::byte* to) const {
  const FieldFormat& field = fields_[index];
  std::int64_t number = 0;
  switch (temporal_from_python(field.type, field.temporal, value, &number)) {
    case TemporalError::None:
      break;
    case TemporalError::WrongType:
      return reject(index, value);
    case TemporalError::NeedsZone:
      return refuse(index, value, "which has no time zone, but the field has one");
    case TemporalError::UnwantedZone:
      return refuse(index, value, "which has a time zone, but the field has none");
    case TemporalError::LosesPrecision:
      return refuse(index, value, "which is finer than the field's unit");
    case TemporalError::OutOfRange:
      return refuse(index, value, "which doesn't fit into the field's unit");
    case TemporalError::Raised:
      return false;
  }
  if (size_of(field.type) == 4) {
    store(to, static_cast<std::int32_t>(number));  // a time of day or a date of datetime's range fits
  } else {
    store(to, number);
  }
  return true;
}

bool RecordCodec::reject(std::size_t index, PyObject* value) const {
  const std::string text = shown(value);
  PyErr_Format(PyExc_TypeError, "operator '%s', field '%s': expected %s, got %s (%s)", operator_.c_str(),
               schema_->fields()[index].name.c_str(), wanted(fields_[index].type), text.c_str(), Py_TYPE(value)->tp_name);
  return false;
}

bool RecordCodec::refuse(std::size_t index, PyObject* value, const char* reason) const {
  const std::string text = shown(value);
  PyErr_Format(PyExc_ValueError, "operator '%s', field '%s': got %s, %s", operator_.c_str(), schema_->fields()[index].name.c_str(),
               text.c_str(), reason);
  return false;
}

}  // namespace rayelastic::python
