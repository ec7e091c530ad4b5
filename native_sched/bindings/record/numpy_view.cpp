// A run as a NumPy structured array: the vectorised lane for numbers.
//
// The array is a buffer of the operator's own, into which the run is copied (16 KiB at most by default: a fraction of what the call
// costs). So the function may write into it and return it; if it keeps it, the next run gets another one.
// Text fields are 16 opaque bytes that can be handed on, not read; new text is given as columns of str (or bytes). A null is a zero, and
// its bit is in the field "_validity".
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "rayelastic/record/string_view.hpp"
#include "record/record_codec.hpp"
#include "record/run_view.hpp"

namespace rayelastic::python {

namespace nb = nanobind;

namespace {

constexpr const char* kValidity = "_validity";

std::string format_of(const Field& field) {
  const char unit = field.format.size() > 2 ? field.format[2] : 's';
  switch (field.type) {
    case Type::Bool:
      return "?";
    case Type::Int8:
      return "i1";
    case Type::Int16:
      return "i2";
    case Type::Int32:
    case Type::Date32:
    case Type::Time32:
      return "i4";
    case Type::Int64:
    case Type::Time64:
      return "i8";
    case Type::UInt8:
      return "u1";
    case Type::UInt16:
      return "u2";
    case Type::UInt32:
      return "u4";
    case Type::UInt64:
      return "u8";
    case Type::Float16:
      return "f2";
    case Type::Float32:
      return "f4";
    case Type::Float64:
      return "f8";
    case Type::Date64:
      return "M8[ms]";
    case Type::Timestamp:
      return std::string("M8[") + (unit == 's' ? "s]" : std::string{unit, 's', ']'});
    case Type::Duration:
      return std::string("m8[") + (unit == 's' ? "s]" : std::string{unit, 's', ']'});
    case Type::String:
    case Type::Binary:
    case Type::Decimal128:
    case Type::Uuid:
      return "V16";
  }
  return "";
}

std::size_t nullable_fields(const Schema& schema) {
  return static_cast<std::size_t>(std::ranges::count_if(schema.fields(), [](const Field& field) { return field.nullable; }));
}

nb::object dtype_of(const Schema& schema) {
  nb::list names, formats, offsets;
  for (const Field& field : schema.fields()) {
    names.append(field.name.c_str());
    formats.append(format_of(field).c_str());
    offsets.append(field.offset);
  }
  if (const std::size_t bits = nullable_fields(schema); bits > 0) {
    names.append(kValidity);
    std::string format = "V";  // in two steps: GCC 12 warns of operator+ (its bug 105651)
    format += std::to_string((bits + 7) / 8);
    formats.append(format.c_str());
    offsets.append(schema.validity_offset());
  }
  nb::dict description;
  description["names"] = names, description["formats"] = formats, description["offsets"] = offsets,
  description["itemsize"] = schema.record_size();
  return nb::module_::import_("numpy").attr("dtype")(description);
}

// The bytes of a C-contiguous array, which the scope keeps alive.
class ArrayBytes {
 public:
  explicit ArrayBytes(const nb::object& array) : bytes_(array.attr("view")("u1")) {
    if (PyObject_GetBuffer(bytes_.ptr(), &buffer_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~ArrayBytes() { PyBuffer_Release(&buffer_); }
  ArrayBytes(const ArrayBytes&) = delete;
  ArrayBytes& operator=(const ArrayBytes&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(buffer_.buf); }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(buffer_.len); }

 private:
  nb::object bytes_;
  Py_buffer buffer_{};
};

class NumpyView final : public RunView {
 public:
  NumpyView(const std::string& name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output)
      : name_(name),
        input_(std::move(input)),
        output_(std::move(output)),
        numpy_(nb::module_::import_("numpy")),
        input_dtype_(dtype_of(*input_)) {
    if (output_ != nullptr) output_dtype_ = dtype_of(*output_);
  }

  PyObject* to_python(const std::byte* records, std::size_t count) override {
    return with_python_errors([&] {
      if (count > capacity_ || !base_.is_valid() || Py_REFCNT(base_.ptr()) != 1) {
        capacity_ = std::max(count, capacity_);
        base_ = numpy_.attr("empty")(capacity_, input_dtype_);
        data_ = ArrayBytes(base_).data();
      }
      std::memcpy(data_, records, count * input_->record_size());
      if (output_ != nullptr && output_->has_text()) remember_texts(records, count);
      PyObject* view = PySequence_GetSlice(base_.ptr(), 0, static_cast<Py_ssize_t>(count));
      if (view == nullptr) throw nb::python_error();
      return view;
    });
  }

  bool from_python(PyObject* result, std::size_t expected, std::size_t* failed) override {
    encoded_.clear();
    made_.clear();
    return with_python_errors([&]() -> PyObject* {
             const nb::object array = records_of(nb::borrow(result), expected);
             const ArrayBytes bytes(numpy_.attr("ascontiguousarray")(array));
             const std::size_t count = bytes.size() / output_->record_size();
             if (expected != kUnknownIndex && count != expected)
               refuse(std::to_string(expected) + " records in, " + std::to_string(count) + " out");
             encoded_.records.assign(bytes.data(), bytes.data() + bytes.size());
             encoded_.count = count;
             if (output_->has_text()) check_texts(failed, expected != kUnknownIndex);
             if (!made_.empty()) keep_made(failed, expected != kUnknownIndex);
             return result;
           }) != nullptr;
  }

  bool mask_from_python(PyObject* result, std::size_t count, std::vector<std::uint8_t>& mask, std::size_t*) override {
    return mask_from_array(name_, result, count, mask);
  }

  std::int64_t submit(std::byte* out, std::int64_t capacity, rel_context* context) override {
    return emit(*output_, encoded_, out, capacity, context);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw nb::value_error(("operator '" + name_ + "': " + what).c_str()); }

  // An array of the output's dtype from that, from a column, or from columns by name.
  nb::object records_of(const nb::object& result, std::size_t count) {
    const bool by_name = PyDict_Check(result.ptr()) != 0;
    if (!by_name && nb::hasattr(result, "dtype") && result.attr("dtype").equal(output_dtype_)) {
      if (nb::cast<int>(result.attr("ndim")) != 1) refuse("expected an array of one dimension");
      return result;
    }
    const std::vector<Field>& fields = output_->fields();
    const bool structured = !by_name && nb::hasattr(result, "dtype") && !result.attr("dtype").attr("names").is_none();
    if (!by_name && !structured && fields.size() != 1) {
      refuse("expected a structured array or {field: column} with the fields of its output schema, got " +
             std::string(Py_TYPE(result.ptr())->tp_name));
    }
    nb::object records;
    for (const Field& field : fields) {
      nb::object column = result;
      if (by_name || structured) {
        PyObject* found = PyObject_GetItem(result.ptr(), nb::str(field.name.c_str()).ptr());
        if (found == nullptr) {
          PyErr_Clear();
          refuse("field '" + field.name + "' is missing from the result");
        }
        column = nb::steal(found);
      }
      column = numpy_.attr("asarray")(column);
      const nb::object wanted = output_dtype_.attr("__getitem__")(field.name.c_str());
      const bool made = is_made(field, column);
      if (!made) check_cast(field, column.attr("dtype"), wanted);
      const auto size = nb::cast<std::size_t>(column.attr("size"));
      if (nb::cast<int>(column.attr("ndim")) != 1) refuse("field '" + field.name + "': expected a column of one dimension");
      if (count == kUnknownIndex) count = size;
      if (size != count)
        refuse("field '" + field.name + "' has " + std::to_string(size) + " values where " + std::to_string(count) + " are due");
      if (!records.is_valid()) records = numpy_.attr("zeros")(count, output_dtype_);
      if (made) {
        made_.emplace_back(&field, nb::list(column.attr("tolist")()));
      } else {
        records.attr("__setitem__")(field.name.c_str(), column);
      }
    }
    mark_valid(records);
    return records;
  }

  // Whether a column is one of Python's texts.
  static bool is_made(const Field& field, const nb::object& column) {
    if (field.type != Type::String && field.type != Type::Binary) return false;
    const auto kind = nb::cast<std::string>(column.attr("dtype").attr("kind"));
    return kind == "O" || kind == (field.type == Type::String ? "U" : "S");
  }

  // Text that is made goes along with the records, and so does what is handed on beside it.
  void keep_made(std::size_t* failed, bool one_to_one) {
    for (std::size_t i = 0; i < encoded_.count; ++i) {
      std::byte* const record = encoded_.records.data() + i * output_->record_size();
      for (const Field& field : output_->fields()) {
        if (field.type != Type::String && field.type != Type::Binary) continue;
        StringView text;
        const auto made = std::ranges::find(made_, &field, &Made::first);
        if (made == made_.end()) {
          std::memcpy(static_cast<void*>(&text), record + field.offset, sizeof text);
        } else if (const nb::handle value = made->second[i]; value.is_none() && field.nullable) {
          const auto bit = static_cast<std::size_t>(field.validity);
          record[output_->validity_offset() + bit / 8] &= ~static_cast<std::byte>(1U << (bit % 8));
        } else if (!text_of(field, value, text)) {
          if (one_to_one) *failed = i;
          refuse("field '" + field.name + "': expected " + (field.type == Type::String ? "str" : "bytes") + ", got " +
                 std::string(Py_TYPE(value.ptr())->tp_name));
        }
        if (!text.is_inline()) {
          const char* const from = text.pointer;
          text.pointer = reinterpret_cast<const char*>(encoded_.text.size());  // see EncodedRecords
          encoded_.text.insert(encoded_.text.end(), from, from + text.length);
        }
        std::memcpy(record + field.offset, static_cast<const void*>(&text), sizeof text);
      }
    }
  }

  static bool text_of(const Field& field, nb::handle value, StringView& text) {
    Py_ssize_t size = 0;
    const char* data = nullptr;
    if (field.type == Type::String && PyUnicode_Check(value.ptr())) {
      data = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
      if (data == nullptr) throw nb::python_error();
    } else if (field.type == Type::Binary && PyBytes_Check(value.ptr())) {
      data = PyBytes_AS_STRING(value.ptr());
      size = PyBytes_GET_SIZE(value.ptr());
    }
    if (data == nullptr || size > UINT32_MAX) return false;
    text = StringView(data, static_cast<std::uint32_t>(size));
    return true;
  }

  // NumPy's assignment would cut a float to an int silently.
  void check_cast(const Field& field, const nb::object& from, const nb::object& to) const {
    const bool text = field.type == Type::String || field.type == Type::Binary;
    if (from.is(to) || (text && from.equal(to))) return;
    const bool floats = nb::cast<std::string>(from.attr("kind")) == "f" && nb::cast<std::string>(to.attr("kind")) == "f";
    if (!text && nb::cast<bool>(numpy_.attr("can_cast")(from, to, floats ? "same_kind" : "safe"))) return;
    refuse("field '" + field.name + "': expected " + nb::cast<std::string>(nb::str(to)) + ", got " + nb::cast<std::string>(nb::str(from)) +
           (text ? "; new text is a column of str or bytes" : "; convert it with .astype"));
  }

  void mark_valid(const nb::object& records) const {
    const std::size_t bits = nullable_fields(*output_);
    if (bits == 0) return;
    const ArrayBytes bytes(records);
    const std::size_t stride = output_->record_size();
    for (std::size_t at = output_->validity_offset(); at < bytes.size(); at += stride) {
      for (std::size_t bit = 0; bit < bits; ++bit) bytes.data()[at + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
    }
  }

  // A long text of the output has to be one of the input: anything else would be an address made up.
  void remember_texts(const std::byte* records, std::size_t count) {
    texts_.clear();
    for (const Field& field : input_->fields()) {
      if (field.type != Type::String && field.type != Type::Binary) continue;
      for (std::size_t i = 0; i < count; ++i) {
        StringView text;
        std::memcpy(static_cast<void*>(&text), records + i * input_->record_size() + field.offset, sizeof text);
        if (!text.is_inline()) texts_.emplace_back(text.pointer, text.length);
      }
    }
    std::ranges::sort(texts_);
  }

  void check_texts(std::size_t* failed, bool one_to_one) const {
    for (std::size_t i = 0; i < encoded_.count; ++i) {
      for (const Field& field : output_->fields()) {
        if (field.type != Type::String && field.type != Type::Binary) continue;
        StringView text;
        std::memcpy(static_cast<void*>(&text), encoded_.records.data() + i * output_->record_size() + field.offset, sizeof text);
        if (text.is_inline() || std::ranges::binary_search(texts_, std::pair(text.pointer, text.length))) continue;
        if (one_to_one) *failed = i;
        refuse("field '" + field.name + "': these 16 bytes are no text that came in; return new text as a column of str or bytes");
      }
    }
  }

  std::string name_;
  std::shared_ptr<const Schema> input_;
  std::shared_ptr<const Schema> output_;
  nb::object numpy_;
  nb::object input_dtype_;
  nb::object output_dtype_;
  nb::object base_;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::vector<std::pair<const char*, std::uint32_t>> texts_;
  EncodedRecords encoded_;
  using Made = std::pair<const Field*, nb::list>;
  std::vector<Made> made_;  // columns of the result that are Python's texts
};

}  // namespace

bool mask_from_array(const std::string& name, PyObject* result, std::size_t count, std::vector<std::uint8_t>& mask) {
  try {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object array = numpy.attr("asarray")(nb::borrow(result));
    const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    if ((kind != "b" && kind != "O") || nb::cast<int>(array.attr("ndim")) != 1 || nb::cast<std::size_t>(array.attr("size")) != count) {
      PyErr_Format(PyExc_ValueError, "operator '%s': expected a mask of %zu bools, got %s of shape %S", name.c_str(), count,
                   nb::cast<std::string>(nb::str(array.attr("dtype"))).c_str(), array.attr("shape").ptr());
      return false;
    }
    const ArrayBytes bytes(numpy.attr("ascontiguousarray")(array, nb::arg("dtype") = "?"));
    mask.resize(count);
    std::memcpy(mask.data(), bytes.data(), count);
    return true;
  } catch (nb::python_error& error) {
    error.restore();
    return false;
  }
}

std::unique_ptr<RunView> make_numpy_view(const std::string& name, std::shared_ptr<const Schema> input,
                                         std::shared_ptr<const Schema> output) {
  return std::make_unique<NumpyView>(name, std::move(input), std::move(output));
}

}  // namespace rayelastic::python
