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
    ValueForm form;
    if (field.form != nullptr) {
      form = *field.form;
    } else {
      form.type = field.type;
      form.format = field.format;
    }
    const auto* known = static_cast<const ObjectRef*>(field.known.get());
    try {
      fields_.push_back(
          FieldFormat{field.offset, field.validity, field.type, ValueCodec(std::move(form), known != nullptr ? known->get() : nullptr)});
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("operator '" + operator_ + "', field '" + field.name + "': " + error.what());
    }
    names_.push_back(ObjectRef::take(PyUnicode_InternFromString(field.name.c_str())));
  }
  Py_INCREF(tuple_type_);
  const bool plain = std::ranges::all_of(fields_, [](const FieldFormat& field) { return field.codec.is_plain(); });
  untrack_ = plain && (tuple_type_ == &PyTuple_Type || tuple_type_->tp_dictoffset == 0);
}

RecordCodec::~RecordCodec() { Py_DECREF(tuple_type_); }

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
  if (field.codec.is_variable()) {
    const auto* text = reinterpret_cast<const StringView*>(at);
    return field.codec.is_plain() ? field.codec.scalar().decode(text->data(), text->length)
                                  : field.codec.decode({text->data(), text->length});
  }
  return field.codec.is_plain() ? field.codec.scalar().decode(at)
                                : field.codec.decode({reinterpret_cast<const char*>(at), size_of(field.type)});
}

bool RecordCodec::encode_one(PyObject* value, EncodedRecords& out) const {
  const std::size_t record = out.records.size();
  const std::size_t text = out.text.size();
  out.records.resize(record + schema_->record_size());  // zeroed: padding and absent values are equal bytes
  const auto size = static_cast<Py_ssize_t>(fields_.size());
  bool done = true;
  if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == size) {
    for (Py_ssize_t i = 0; done && i < size; ++i) done = encode_field(PyTuple_GET_ITEM(value, i), static_cast<std::size_t>(i), record, out);
  } else if (const ObjectRef values = named_values(value); values) {
    done = encode_named(values.get(), record, out);
  } else if (PyErr_Occurred() != nullptr) {
    done = false;
  } else if (size == 1 && !PyTuple_Check(value)) {
    done = encode_field(value, 0, record, out);
  } else {
    PyErr_Format(PyExc_TypeError, "operator '%s': expected a tuple (%s), or a dict with these keys, got %s", operator_.c_str(),
                 field_names().c_str(), shown(value).c_str());
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

std::string RecordCodec::field_names() const {
  std::string names;
  for (const Field& field : schema_->fields()) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

// The values of a record by name, where it is given as a dict or as an instance; null of anything else, perhaps with a Python error set.
ObjectRef RecordCodec::named_values(PyObject* value) const {
  if (PyTuple_Check(value) || (fields_.size() == 1 && fields_[0].codec.holds_named_values())) return {};
  if (PyDict_Check(value)) return ObjectRef::share(value);
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  if ((Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || type == last_value_type_.get()) return {};
  const ObjectRef module = ObjectRef::take(PyImport_ImportModule("rayelastic.graph.records.record_classes"));
  ObjectRef values = module ? ObjectRef::take(PyObject_CallMethod(module.get(), "values_by_name", "O", value)) : ObjectRef();
  if (!values) return {};
  if (PyDict_Check(values.get())) return values;
  last_value_type_ = ObjectRef::share(type);
  return {};
}

bool RecordCodec::encode_named(PyObject* values, std::size_t record, EncodedRecords& out) const {
  Py_ssize_t taken = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const ObjectRef given = ObjectRef::share(PyDict_GetItemWithError(values, names_[i].get()));
    if (!given && PyErr_Occurred() != nullptr) return false;
    if (!given && fields_[i].validity < 0) {
      PyErr_Format(PyExc_TypeError, "operator '%s', field '%s': the key %R is missing in %s: pass each of %s", operator_.c_str(),
                   schema_->fields()[i].name.c_str(), names_[i].get(), shown(values).c_str(), field_names().c_str());
      return false;
    }
    taken += given ? 1 : 0;
    if (given && !encode_field(given.get(), i, record, out)) return false;
  }
  if (taken == PyDict_GET_SIZE(values)) return true;
  PyObject* key = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(values, &at, &key, nullptr) != 0) {
    const bool known =
        std::ranges::any_of(names_, [&](const ObjectRef& name) { return PyObject_RichCompareBool(name.get(), key, Py_EQ) == 1; });
    if (known) continue;
    PyErr_Format(PyExc_TypeError,
                 "operator '%s', field %R: no such field in the schema (%s), got %s: leave it out, or add it to schema=", operator_.c_str(),
                 key, field_names().c_str(), shown(values).c_str());
    return false;
  }
  return true;
}

bool RecordCodec::encode_field(PyObject* value, std::size_t index, std::size_t record, EncodedRecords& out) const {
  const FieldFormat& field = fields_[index];
  std::byte* at = out.records.data() + record;
  if (value == Py_None) {
    if (field.validity >= 0) return true;  // the bit is 0 already
    Refusal refusal;
    (void)refusal.refused(value, "and the field isn't nullable: declare it as '<type> | None'");
    return complain(index, refusal);
  }
  if (field.validity >= 0) {
    const auto bit = static_cast<std::size_t>(field.validity);
    at[schema_->validity_offset() + bit / 8] |= static_cast<std::byte>(1U << (bit % 8));
  }
  Refusal refusal;
  if (field.codec.is_variable() ? encode_text(value, index, record, out, refusal) : field.codec.put(value, at + field.offset, refusal))
    return true;
  return complain(index, refusal);
}

bool RecordCodec::encode_text(PyObject* value, std::size_t index, std::size_t record, EncodedRecords& out, Refusal& refusal) const {
  const FieldFormat& field = fields_[index];
  const auto keep = [&](const char* data, std::size_t bytes) {
    StringView view(data, static_cast<std::uint32_t>(bytes));
    if (!view.is_inline()) {
      view.pointer = reinterpret_cast<const char*>(out.text.size());  // an offset until emit
      out.text.insert(out.text.end(), data, data + bytes);
    }
    store(out.records.data() + record + field.offset, view);
  };
  if (field.codec.is_plain()) {
    GivenBytes given;
    if (!field.codec.scalar().bytes_of(value, given, refusal)) return false;
    keep(given.data, given.size);
    return true;
  }
  std::string bytes;
  if (!field.codec.append(value, bytes, refusal)) return false;
  if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) return refusal.refused(value, "which is longer than 4 GiB");
  keep(bytes.data(), bytes.size());
  return true;
}

// The Python error for a value that wasn't taken.
bool RecordCodec::complain(std::size_t index, const Refusal& refusal) const {
  const std::string field = schema_->fields()[index].name + refusal.path;
  const bool raised = refusal.kind == Refusal::Kind::Raised;
  if (raised) return false;
  const std::string text = shown(refusal.value.get());
  if (refusal.kind == Refusal::Kind::Wrong) {
    PyErr_Format(PyExc_TypeError, "operator '%s', field '%s': expected %s, got %s (%s)", operator_.c_str(), field.c_str(),
                 refusal.wanted.c_str(), text.c_str(), Py_TYPE(refusal.value.get())->tp_name);
  } else {
    PyErr_Format(PyExc_ValueError, "operator '%s', field '%s': got %s, %s", operator_.c_str(), field.c_str(), text.c_str(),
                 refusal.reason.c_str());
  }
  return false;
}

}  // namespace rayelastic::python
