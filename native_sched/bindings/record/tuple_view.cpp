// A run as a list of the user's tuples: the python lane.
#include <optional>
#include <string>

#include "record/record_codec.hpp"
#include "record/run_view.hpp"

namespace rayelastic::python {

namespace {

class TupleView final : public RunView {
 public:
  TupleView(const std::string& name, const std::shared_ptr<const Schema>& input, const std::shared_ptr<const Schema>& output,
            PyObject* input_type)
      : name_(name) {
    if (input != nullptr) input_.emplace(name, input, input_type);
    if (output != nullptr) output_.emplace(name, output, nullptr);
  }

  PyObject* to_python(const std::byte* records, std::size_t count) override {
    return input_->decode(records, count, input_->schema().record_size());
  }

  bool from_python(PyObject* result, std::size_t expected, std::size_t* failed) override {
    encoded_.clear();
    PyObject* items = items_of(result, expected);
    if (items == nullptr) return false;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(items);
    bool done = true;
    for (Py_ssize_t i = 0; done && i < size && i < PySequence_Fast_GET_SIZE(items); ++i) {
      done = output_->encode_one(PySequence_Fast_GET_ITEM(items, i), encoded_);
      if (!done && expected != kUnknownIndex) *failed = static_cast<std::size_t>(i);
    }
    Py_DECREF(items);
    return done;
  }

  bool mask_from_python(PyObject* result, std::size_t count, std::vector<std::uint8_t>& mask, std::size_t* failed) override {
    mask.resize(count);
    PyObject* items = items_of(result, count);
    if (items == nullptr) return false;
    bool done = true;
    for (std::size_t i = 0; done && i < count; ++i) {
      const int keep = PyObject_IsTrue(PySequence_Fast_GET_ITEM(items, static_cast<Py_ssize_t>(i)));
      mask[i] = keep > 0 ? 1 : 0;
      done = keep >= 0;
      if (!done) *failed = i;
    }
    Py_DECREF(items);
    return done;
  }

  std::int64_t submit(std::byte* out, std::int64_t capacity, rel_context* context) override {
    return emit(output_->schema(), encoded_, out, capacity, context);
  }

 private:
  PyObject* items_of(PyObject* result, std::size_t expected) const {
    PyObject* items = PySequence_Fast(result, "");
    if (items == nullptr) {
      if (PyErr_ExceptionMatches(PyExc_TypeError) != 0)
        PyErr_Format(PyExc_TypeError, "operator '%s': expected a list, got %s", name_.c_str(), Py_TYPE(result)->tp_name);
      return nullptr;
    }
    if (expected != kUnknownIndex && PySequence_Fast_GET_SIZE(items) != static_cast<Py_ssize_t>(expected)) {
      PyErr_Format(PyExc_ValueError, "operator '%s': %zu tuples in, %zd results out", name_.c_str(), expected,
                   PySequence_Fast_GET_SIZE(items));
      Py_DECREF(items);
      return nullptr;
    }
    return items;
  }

  std::string name_;
  std::optional<RecordCodec> input_;
  std::optional<RecordCodec> output_;
  EncodedRecords encoded_;
};

}  // namespace

std::unique_ptr<RunView> make_tuple_view(const std::string& name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output,
                                         PyObject* input_type) {
  return std::make_unique<TupleView>(name, input, output, input_type);
}

}  // namespace rayelastic::python
