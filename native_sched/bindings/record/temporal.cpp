#include "record/temporal.hpp"

#include <chrono>
#include <string_view>

#include <datetime.h>

namespace rayelastic::python {

namespace {

constexpr std::int64_t kMicros = 1'000'000;
constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kMicrosPerDay = kSecondsPerDay * kMicros;
// datetime.min and datetime.max as days since 1970.
constexpr std::int64_t kFirstDay = -719'162;
constexpr std::int64_t kLastDay = 2'932'896;

[[nodiscard]] bool ensure_datetime_api() {
  if (PyDateTimeAPI == nullptr) PyDateTime_IMPORT;
  return PyDateTimeAPI != nullptr;
}

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Microseconds of `value` units; false if it has a fraction of a microsecond or doesn't fit.
bool to_micros(std::int64_t value, std::int64_t per_second, std::int64_t* micros) {
  if (per_second > kMicros) {
    const std::int64_t step = per_second / kMicros;
    if (value % step != 0) return false;
    *micros = value / step;
    return true;
  }
  return !__builtin_mul_overflow(value, kMicros / per_second, micros);
}

TemporalError from_micros(std::int64_t micros, std::int64_t per_second, std::int64_t* value) {
  if (per_second > kMicros) {
    return __builtin_mul_overflow(micros, per_second / kMicros, value) ? TemporalError::OutOfRange : TemporalError::None;
  }
  const std::int64_t step = kMicros / per_second;
  if (micros % step != 0) return TemporalError::LosesPrecision;
  *value = micros / step;
  return TemporalError::None;
}

std::int64_t days_of(PyObject* date) {
  using namespace std::chrono;
  const sys_days day =
      year{PyDateTime_GET_YEAR(date)} / static_cast<unsigned>(PyDateTime_GET_MONTH(date)) / static_cast<unsigned>(PyDateTime_GET_DAY(date));
  return day.time_since_epoch().count();
}

PyObject* date_of(std::int64_t days) {
  using namespace std::chrono;
  if (days < kFirstDay || days > kLastDay)
    return PyErr_Format(PyExc_ValueError, "day %lld is outside of what a date can hold", static_cast<long long>(days));
  const year_month_day date{sys_days{std::chrono::days{days}}};
  return PyDate_FromDate(static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
                         static_cast<int>(static_cast<unsigned>(date.day())));
}

PyObject* datetime_of(const TemporalFormat& format, std::int64_t micros) {
  using namespace std::chrono;
  const std::int64_t days = floor_div(micros, kMicrosPerDay);
  if (days < kFirstDay || days > kLastDay)
    return PyErr_Format(PyExc_ValueError, "timestamp %lld us is outside of what a datetime can hold", static_cast<long long>(micros));
  const std::int64_t rest = micros - days * kMicrosPerDay;
  const auto second = static_cast<int>(rest / kMicros);
  const year_month_day date{sys_days{std::chrono::days{days}}};
  PyObject* result = PyDateTimeAPI->DateTime_FromDateAndTime(
      static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
      static_cast<int>(static_cast<unsigned>(date.day())), second / 3600, second / 60 % 60, second % 60, static_cast<int>(rest % kMicros),
      format.zone != nullptr ? format.zone : Py_None, PyDateTimeAPI->DateTimeType);
  if (result == nullptr || format.zone == nullptr || format.is_utc) return result;
  PyObject* local = PyObject_CallMethod(format.zone, "fromutc", "O", result);  // tzinfo.fromutc takes UTC fields labelled with itself
  Py_DECREF(result);
  return local;
}

std::int64_t micros_of_delta(PyObject* delta) {
  return (PyDateTime_DELTA_GET_DAYS(delta) * kSecondsPerDay + PyDateTime_DELTA_GET_SECONDS(delta)) * kMicros +
         PyDateTime_DELTA_GET_MICROSECONDS(delta);
}

// What a pandas Timestamp has beyond microseconds.
TemporalError add_nanoseconds(const TemporalFormat& format, PyObject* value, std::int64_t* out) {
  constexpr std::int64_t kNanos = 1'000'000'000;
  PyObject* nanoseconds = PyObject_GetAttrString(value, "nanosecond");
  if (nanoseconds == nullptr) {
    PyErr_Clear();
    return TemporalError::None;
  }
  const std::int64_t rest = PyLong_Check(nanoseconds) ? PyLong_AsLongLong(nanoseconds) : 0;
  Py_DECREF(nanoseconds);
  if (rest == 0) return TemporalError::None;
  if (format.per_second != kNanos) return TemporalError::LosesPrecision;
  return __builtin_add_overflow(*out, rest, out) ? TemporalError::OutOfRange : TemporalError::None;
}

TemporalError from_datetime(const TemporalFormat& format, PyObject* value, std::int64_t* out) {
  if (!PyDateTime_Check(value)) return TemporalError::WrongType;
  std::int64_t micros =
      days_of(value) * kMicrosPerDay + PyDateTime_DATE_GET_MICROSECOND(value) +
      (PyDateTime_DATE_GET_HOUR(value) * 3600 + PyDateTime_DATE_GET_MINUTE(value) * 60 + PyDateTime_DATE_GET_SECOND(value)) * kMicros;
  if (PyDateTime_DATE_GET_TZINFO(value) == Py_None) {
    if (format.zone != nullptr) return TemporalError::NeedsZone;
  } else {
    if (format.zone == nullptr) return TemporalError::UnwantedZone;
    PyObject* offset = PyObject_CallMethod(value, "utcoffset", nullptr);
    if (offset == nullptr) return TemporalError::Raised;
    const bool known = PyDelta_Check(offset);
    if (known) micros -= micros_of_delta(offset);
    Py_DECREF(offset);
    if (!known) return TemporalError::NeedsZone;
  }
  const TemporalError error = from_micros(micros, format.per_second, out);
  return error != TemporalError::None || PyDateTime_CheckExact(value) ? error : add_nanoseconds(format, value, out);
}

}  // namespace

bool parse_temporal(Type type, const std::string& format, TemporalFormat* parsed, PyObject** zone) {
  *zone = nullptr;
  if (!ensure_datetime_api()) return false;
  switch (type == Type::Date32 || type == Type::Date64 || format.size() < 3 ? 's' : format[2]) {
    case 'm':
      parsed->per_second = 1'000;
      break;
    case 'u':
      parsed->per_second = 1'000'000;
      break;
    case 'n':
      parsed->per_second = 1'000'000'000;
      break;
    default:
      parsed->per_second = 1;
      break;
  }
  if (type != Type::Timestamp || format.size() <= 4) return true;
  const std::string name = format.substr(4);
  if (name == "UTC" || name == "Etc/UTC" || name == "+00:00" || name == "Z") {
    *zone = Py_NewRef(PyDateTime_TimeZone_UTC);
    parsed->is_utc = true;
  } else if (name.size() == 6 && (name[0] == '+' || name[0] == '-') && name[3] == ':') {
    const int seconds = ((name[1] - '0') * 10 + name[2] - '0') * 3600 + ((name[4] - '0') * 10 + name[5] - '0') * 60;
    PyObject* offset = PyDelta_FromDSU(0, name[0] == '-' ? -seconds : seconds, 0);
    *zone = offset != nullptr ? PyTimeZone_FromOffset(offset) : nullptr;
    Py_XDECREF(offset);
  } else {
    PyObject* module = PyImport_ImportModule("zoneinfo");
    *zone = module != nullptr ? PyObject_CallMethod(module, "ZoneInfo", "s", name.c_str()) : nullptr;
    Py_XDECREF(module);
  }
  parsed->zone = *zone;
  return *zone != nullptr;
}

PyObject* temporal_to_python(Type type, const TemporalFormat& format, std::int64_t value) {
  std::int64_t micros = 0;
  if (type == Type::Date32) return date_of(value);
  if (type == Type::Date64) return date_of(floor_div(value, kSecondsPerDay * 1'000));
  if (!to_micros(value, format.per_second, &micros)) {
    return PyErr_Format(
        PyExc_ValueError,
        "%lld ns can't be a %s without losing nanoseconds: convert the column to microseconds, or use the compiled or the arrow lane",
        static_cast<long long>(value), temporal_name(type));
  }
  switch (type) {
    case Type::Time32:
    case Type::Time64: {
      if (micros < 0 || micros >= kMicrosPerDay)
        return PyErr_Format(PyExc_ValueError, "%lld us is no time of day", static_cast<long long>(micros));
      const auto second = static_cast<int>(micros / kMicros);
      return PyTime_FromTime(second / 3600, second / 60 % 60, second % 60, static_cast<int>(micros % kMicros));
    }
    case Type::Duration: {
      const std::int64_t days = floor_div(micros, kMicrosPerDay);
      const std::int64_t rest = micros - days * kMicrosPerDay;
      if (days < -999'999'999 || days > 999'999'999)
        return PyErr_Format(PyExc_OverflowError, "%lld us is outside of what a timedelta can hold", static_cast<long long>(micros));
      return PyDelta_FromDSU(static_cast<int>(days), static_cast<int>(rest / kMicros), static_cast<int>(rest % kMicros));
    }
    default:
      return datetime_of(format, micros);
  }
}

TemporalError temporal_from_python(Type type, const TemporalFormat& format, PyObject* value, std::int64_t* out) {
  switch (type) {
    case Type::Date32:
    case Type::Date64:
      if (!PyDate_Check(value) || PyDateTime_Check(value)) return TemporalError::WrongType;
      *out = days_of(value) * (type == Type::Date64 ? kSecondsPerDay * 1'000 : 1);
      return TemporalError::None;
    case Type::Time32:
    case Type::Time64: {
      if (!PyTime_Check(value)) return TemporalError::WrongType;
      if (PyDateTime_TIME_GET_TZINFO(value) != Py_None) return TemporalError::UnwantedZone;
      const std::int64_t seconds =
          PyDateTime_TIME_GET_HOUR(value) * 3600 + PyDateTime_TIME_GET_MINUTE(value) * 60 + PyDateTime_TIME_GET_SECOND(value);
      return from_micros(seconds * kMicros + PyDateTime_TIME_GET_MICROSECOND(value), format.per_second, out);
    }
    case Type::Duration:
      if (!PyDelta_Check(value)) return TemporalError::WrongType;
      // 292,000 years of microseconds fit; timedelta's 2.7 million years don't.
      if (PyDateTime_DELTA_GET_DAYS(value) > 106'000'000 || PyDateTime_DELTA_GET_DAYS(value) < -106'000'000)
        return TemporalError::OutOfRange;
      return from_micros(micros_of_delta(value), format.per_second, out);
    default:
      return from_datetime(format, value, out);
  }
}

const char* temporal_name(Type type) noexcept {
  switch (type) {
    case Type::Date32:
    case Type::Date64:
      return "date";
    case Type::Time32:
    case Type::Time64:
      return "time";
    case Type::Duration:
      return "timedelta";
    default:
      return "datetime";
  }
}

}  // namespace rayelastic::python
