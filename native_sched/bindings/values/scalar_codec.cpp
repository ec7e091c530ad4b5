#include "values/scalar_codec.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "record/bytes.hpp"

namespace rayelastic::python {

namespace {

__extension__ using Whole = __int128;
__extension__ using Bits = unsigned __int128;

constexpr std::size_t kWide = 16;  // bytes of a decimal and of a UUID

bool is_temporal(Type type) noexcept { return type >= Type::Date32 && type <= Type::Duration; }

bool is_numpy_bool(PyObject* value) noexcept {
  const char* name = Py_TYPE(value)->tp_name;
  return std::strcmp(name, "numpy.bool") == 0 || std::strcmp(name, "numpy.bool_") == 0;
}

// Whether a float is the number that an int is; beyond 2**53 it may be the one next to it.
bool is_number(PyObject* value, double real) {
  if (std::abs(real) < 0x1p53 || PyIndex_Check(value) == 0) return true;
  const ObjectRef given = ObjectRef::take(PyNumber_Index(value));
  const ObjectRef number = ObjectRef::take(PyLong_FromDouble(real));
  const bool same = given && number && PyObject_RichCompareBool(given.get(), number.get(), Py_EQ) == 1;
  PyErr_Clear();
  return same;
}

// Digits of a number written as Python writes a decimal, at a scale. An empty reason: it fits.
std::string scaled(std::string_view text, int scale, int precision, Whole* number) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  long exponent = 0;
  if (const std::size_t at = text.find_first_of("eE"); at != std::string_view::npos) {
    exponent = std::strtol(std::string(text.substr(at + 1)).c_str(), nullptr, 10);
    text = text.substr(0, at);
  }
  std::string digits;
  if (const std::size_t point = text.find('.'); point != std::string_view::npos) {
    digits = std::string(text.substr(0, point)) + std::string(text.substr(point + 1));
    exponent -= static_cast<long>(text.size() - point - 1);
  } else {
    digits = text;
  }
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return "which is no finite number";
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  for (exponent += scale; exponent < 0 && digits.size() > 1 && digits.back() == '0'; ++exponent) digits.pop_back();
  if (digits == "0") exponent = 0;
  if (exponent < 0) return "which has more than " + std::to_string(scale) + " decimal places";
  if (static_cast<long>(digits.size()) + (digits == "0" ? 0 : exponent) > precision)
    return "which has more than " + std::to_string(precision) + " digits at " + std::to_string(scale) + " decimal places";
  digits.append(static_cast<std::size_t>(exponent), '0');
  Whole value = 0;
  for (const char digit : digits) value = value * 10 + (digit - '0');
  *number = negative ? -value : value;
  return {};
}

ObjectRef class_named(const char* module, const char* name) {
  const ObjectRef imported = ObjectRef::take(PyImport_ImportModule(module));
  ObjectRef found = ObjectRef::take(imported ? PyObject_GetAttrString(imported.get(), name) : nullptr);
  if (!found) PyErr_Clear();
  return found;
}

}  // namespace

bool Refusal::wrong(PyObject* given, std::string type) {
  kind = Kind::Wrong, value = ObjectRef::share(given), wanted = std::move(type);
  return false;
}

bool Refusal::refused(PyObject* given, std::string why) {
  kind = Kind::Refused, value = ObjectRef::share(given), reason = std::move(why);
  return false;
}

bool Refusal::raised() {
  kind = Kind::Raised;
  return false;
}

ScalarCodec::ScalarCodec(Type type, const std::string& format) : type_(type) {
  PyObject* zone = nullptr;
  if (is_temporal(type) && !parse_temporal(type, format, &temporal_, &zone)) {
    PyErr_Clear();
    throw std::invalid_argument("time zone of '" + format + "' is unknown here (is tzdata installed?)");
  }
  zone_ = ObjectRef::take(zone);
  if (type == Type::Decimal128) {
    const std::size_t comma = format.find(',');
    precision_ = std::atoi(format.c_str() + 2);
    scale_ = comma == std::string::npos ? 0 : std::atoi(format.c_str() + comma + 1);
    class_ = class_named("decimal", "Decimal");
  } else if (type == Type::Uuid) {
    class_ = class_named("uuid", "UUID");
  }
}

PyObject* ScalarCodec::decode(const std::byte* at) const {
  switch (type_) {
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
      return temporal_to_python(type_, temporal_, load<std::int32_t>(at));
    case Type::Date64:
    case Type::Time64:
    case Type::Timestamp:
    case Type::Duration:
      return temporal_to_python(type_, temporal_, load<std::int64_t>(at));
    case Type::Decimal128:
      return decode_decimal(at);
    case Type::Uuid:
      return decode_uuid(at);
    default:
      return PyErr_Format(PyExc_SystemError, "unknown record type %d", static_cast<int>(type_));
  }
}

PyObject* ScalarCodec::decode(const char* data, std::size_t size) const {
  if (type_ == Type::String) return PyUnicode_DecodeUTF8(data, static_cast<Py_ssize_t>(size), nullptr);
  return PyBytes_FromStringAndSize(data, static_cast<Py_ssize_t>(size));
}

// Exact whatever the precision of the thread's context is: from text.
PyObject* ScalarCodec::decode_decimal(const std::byte* at) const {
  const auto number = load<Whole>(at);
  auto rest = number < 0 ? Bits{0} - static_cast<Bits>(number) : static_cast<Bits>(number);
  std::array<char, 64> text;
  char* begin = text.data() + 48;
  std::snprintf(begin, 16, "E%d", -scale_);
  do {
    *--begin = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (number < 0) *--begin = '-';
  return PyObject_CallFunction(class_.get(), "s", begin);
}

PyObject* ScalarCodec::decode_uuid(const std::byte* at) const {
  const ObjectRef none = ObjectRef::share(Py_None);
  const ObjectRef bytes = ObjectRef::take(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(at), kWide));
  return bytes ? PyObject_CallFunctionObjArgs(class_.get(), none.get(), bytes.get(), nullptr) : nullptr;
}

bool ScalarCodec::encode(PyObject* value, std::byte* to, Refusal& refusal) const {
  switch (type_) {
    case Type::Bool:
      if (PyBool_Check(value)) {
        store<std::uint8_t>(to, value == Py_True ? 1 : 0);
        return true;
      }
      if (!is_numpy_bool(value)) return refusal.wrong(value, "bool");
      store<std::uint8_t>(to, PyObject_IsTrue(value) == 1 ? 1 : 0);
      return true;
    case Type::Float16:
    case Type::Float32:
    case Type::Float64:
      return encode_float(value, to, refusal);
    case Type::Decimal128:
      return encode_decimal(value, to, refusal);
    case Type::Uuid:
      return encode_uuid(value, to, refusal);
    default:
      return is_temporal(type_) ? encode_temporal(value, to, refusal) : encode_integer(value, to, refusal);
  }
}

bool ScalarCodec::encode_float(PyObject* value, std::byte* to, Refusal& refusal) const {
  const bool number = PyFloat_Check(value) || PyLong_Check(value) ||
                      (Py_TYPE(value)->tp_as_number != nullptr && Py_TYPE(value)->tp_as_number->nb_float != nullptr);
  if (!number) return refusal.wrong(value, "float");
  const double real = PyFloat_AsDouble(value);
  if (real == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return refusal.refused(value, "which doesn't fit into a float");
  }
  if (type_ == Type::Float64) {
    if (!is_number(value, real))
      return refusal.refused(value, "which is another number as a float: pass float(...), or declare the field as int");
    store(to, real);
  } else if (type_ == Type::Float32) {
    if (std::isfinite(real) && std::abs(real) > static_cast<double>(std::numeric_limits<float>::max()))
      return refusal.refused(value, "which doesn't fit into float32");
    store(to, static_cast<float>(real));
  } else if (PyFloat_Pack2(real, reinterpret_cast<char*>(to), std::endian::native == std::endian::little ? 1 : 0) != 0) {
    PyErr_Clear();
    return refusal.refused(value, "which doesn't fit into float16");
  }
  return true;
}

bool ScalarCodec::encode_integer(PyObject* value, std::byte* to, Refusal& refusal) const {
  if (!PyLong_Check(value)) {
    if (!PyIndex_Check(value)) return refusal.wrong(value, "int");
    PyObject* integer = PyNumber_Index(value);  // NumPy's integers
    if (integer == nullptr) {
      PyErr_Clear();
      return refusal.wrong(value, "int");
    }
    const bool done = encode_integer(integer, to, refusal);
    if (!done) refusal.value = ObjectRef::share(value);
    Py_DECREF(integer);
    return done;
  }
  if (type_ == Type::UInt64) {
    const unsigned long long number = PyLong_AsUnsignedLongLong(value);
    if (number == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return refusal.refused(value, "which doesn't fit into uint64");
    }
    store<std::uint64_t>(to, number);
    return true;
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  const auto fit = [&]<class T>(T, const char* complaint) {
    if (overflow != 0 || !std::in_range<T>(number)) return refusal.refused(value, complaint);
    store(to, static_cast<T>(number));
    return true;
  };
  switch (type_) {
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

bool ScalarCodec::bytes_of(PyObject* value, GivenBytes& given, Refusal& refusal) const {
  if (type_ == Type::String) {
    if (!PyUnicode_Check(value)) return refusal.wrong(value, "str");
    Py_ssize_t size = 0;
    given.data = PyUnicode_AsUTF8AndSize(value, &size);
    if (given.data == nullptr) {
      PyErr_Clear();
      return refusal.refused(value, "which has a lone surrogate and can't be UTF-8");
    }
    given.size = static_cast<std::size_t>(size);
  } else if (PyBytes_Check(value)) {
    given.data = PyBytes_AS_STRING(value), given.size = static_cast<std::size_t>(PyBytes_GET_SIZE(value));
  } else {
    if (PyObject_GetBuffer(value, &given.buffer_, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      return refusal.wrong(value, "bytes");
    }
    given.data = static_cast<const char*>(given.buffer_.buf), given.size = static_cast<std::size_t>(given.buffer_.len);
  }
  return given.size <= std::numeric_limits<std::uint32_t>::max() || refusal.refused(value, "which is longer than 4 GiB");
}

bool ScalarCodec::encode_temporal(PyObject* value, std::byte* to, Refusal& refusal) const {
  std::int64_t number = 0;
  switch (temporal_from_python(type_, temporal_, value, &number)) {
    case TemporalError::None:
      break;
    case TemporalError::WrongType:
      return refusal.wrong(value, temporal_name(type_));
    case TemporalError::NeedsZone:
      return refusal.refused(value, "which has no time zone, but the field has one: add one, as by value.replace(tzinfo=UTC)");
    case TemporalError::UnwantedZone:
      return refusal.refused(
          value, "which has a time zone, but the field has none: declare it as Annotated[datetime, datetime.UTC], or with a ZoneInfo");
    case TemporalError::LosesPrecision:
      return refusal.refused(value, "which is finer than the field's unit");
    case TemporalError::OutOfRange:
      return refusal.refused(value, "which doesn't fit into the field's unit");
    case TemporalError::Raised:
      return refusal.raised();
  }
  if (size_of(type_) == 4) {
    store(to, static_cast<std::int32_t>(number));  // a time of day or a date of datetime's range fits
  } else {
    store(to, number);
  }
  return true;
}

bool ScalarCodec::encode_decimal(PyObject* value, std::byte* to, Refusal& refusal) const {
  const bool whole = PyLong_Check(value) && !PyBool_Check(value);
  if (!whole && PyObject_IsInstance(value, class_.get()) != 1) return refusal.wrong(value, "Decimal");
  const ObjectRef text = ObjectRef::take(PyObject_Str(value));
  const char* characters = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (characters == nullptr) return refusal.raised();
  Whole number = 0;
  const std::string reason = scaled(characters, scale_, precision_, &number);
  if (!reason.empty()) return refusal.refused(value, reason);
  store(to, number);
  return true;
}

bool ScalarCodec::encode_uuid(PyObject* value, std::byte* to, Refusal& refusal) const {
  if (PyObject_IsInstance(value, class_.get()) != 1) return refusal.wrong(value, "UUID");
  const ObjectRef bytes = ObjectRef::take(PyObject_GetAttrString(value, "bytes"));
  if (!bytes) return refusal.raised();
  std::memcpy(to, PyBytes_AS_STRING(bytes.get()), kWide);
  return true;
}

}  // namespace rayelastic::python
