#include "record/answers.hpp"

#include <algorithm>
#include <vector>

#include "python/port_context.hpp"
#include "python/python_lane.hpp"
#include "record/object_ref.hpp"
#include "record/record_codec.hpp"

namespace rayelastic::python {

namespace {

constexpr std::size_t kAtOnce = 256;  // records that are submitted together

class PythonAnswers final : public Answers {
 public:
  PythonAnswers(const std::string& name, const std::shared_ptr<const Schema>& input, const std::shared_ptr<const Schema>& output,
                PyObject* answer)
      : function_(ObjectRef::share(answer)),
        input_(std::make_unique<RecordCodec>(name, input, nullptr)),
        output_(output == nullptr ? nullptr : std::make_unique<RecordCodec>(name, output, nullptr)) {}

  bool ask(const std::byte* record) override {
    encoded_.clear();
    const GilScope gil;
    if (!gil) return false;
    record_ = record;
    PyObject* tuple = input_->decode_one(record);
    PyObject* given = tuple != nullptr ? PyObject_CallOneArg(function_.get(), tuple) : nullptr;
    const bool taken = given != nullptr && given != Py_None && take(given);
    PyErr_Clear();
    Py_XDECREF(given);
    Py_XDECREF(tuple);
    return taken;
  }

  // Without the GIL.
  bool submit(rel_context* context, std::int64_t skipped) override {
    if (output_ == nullptr) return !passes_ || context->emit(0, record_, 1);
    const Schema& schema = output_->schema();
    skip(static_cast<std::size_t>(skipped));
    const std::size_t room = std::min(std::max<std::size_t>(encoded_.count, 1), kAtOnce);
    out_.resize(room * schema.record_size());
    PortContext to(*context, 0, out_.data());
    const std::int64_t left = emit(schema, encoded_, out_.data(), static_cast<std::int64_t>(room), &to);
    return left >= 0 && to.flush(left);
  }

 private:
  // GIL. False: it doesn't fit.
  bool take(PyObject* given) {
    if (output_ == nullptr) {
      const int passes = PyObject_IsTrue(given);
      passes_ = passes == 1;
      return passes >= 0;
    }
    PyObject* items = PySequence_Fast(given, "an answer is a sequence");
    bool fits = items != nullptr;
    for (Py_ssize_t i = 0; fits && i < PySequence_Fast_GET_SIZE(items); ++i)
      fits = output_->encode_one(PySequence_Fast_GET_ITEM(items, i), encoded_);
    Py_XDECREF(items);
    return fits;
  }

  // Texts stay where they are: views are offsets into all of them until emit.
  void skip(std::size_t records) {
    records = std::min(records, encoded_.count);
    encoded_.count -= records;
    encoded_.records.erase(encoded_.records.begin(),
                           encoded_.records.begin() + static_cast<std::ptrdiff_t>(records * output_->schema().record_size()));
  }

  ObjectRef function_;
  const std::unique_ptr<RecordCodec> input_;
  const std::unique_ptr<RecordCodec> output_;  // null: of a filter
  EncodedRecords encoded_;
  std::vector<std::byte> out_;
  const std::byte* record_ = nullptr;
  bool passes_ = false;
};

}  // namespace

std::shared_ptr<Answers> make_answers(const std::string& name, const std::shared_ptr<const Schema>& input,
                                      const std::shared_ptr<const Schema>& output, PyObject* answer) {
  return {new PythonAnswers(name, input, output, answer), [](Answers* self) {
            const GilScope gil;
            if (gil) delete self;
          }};
}

}  // namespace rayelastic::python
