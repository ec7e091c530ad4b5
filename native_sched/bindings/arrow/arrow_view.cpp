// A run as a pyarrow.RecordBatch: the vectorised lane for text, nulls, pandas and Polars.
#include <algorithm>
#include <string>

#include "arrow/arrow_capsules.hpp"
#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/arrow/arrow_writer.hpp"
#include "record/run_view.hpp"

namespace rayelastic::python {

namespace {

class ArrowView final : public RunView {
 public:
  ArrowView(const std::string& name, const std::shared_ptr<const Schema>& input, std::shared_ptr<const Schema> output)
      : name_(name), input_(input), output_(std::move(output)), writer_(input) {}

  PyObject* to_python(const std::byte* records, std::size_t count) override {
    if (writer_.append(records, count) != count) throw std::runtime_error("more than 2 GiB of text in one run");
    ArrowOwned<ArrowArray> array;
    ArrowOwned<ArrowSchema> schema;
    writer_.take(&array);
    export_schema(*input_, &schema);
    return with_python_errors([&] { return export_batch(&array, &schema).release().ptr(); });
  }

  bool from_python(PyObject* result, std::size_t expected, std::size_t*) override {
    batch_.reset();
    return with_python_errors([&]() -> PyObject* {
             ArrowOwned<ArrowArray> array;
             ArrowOwned<ArrowSchema> schema;
             import_batch(result, &array, &schema);
             try {
               batch_ = std::make_unique<ArrowBatch>(output_, &array, schema);
             } catch (const ArrowError& error) {
               throw nb::value_error(("operator '" + name_ + "': " + error.what()).c_str());
             }
             if (expected != kUnknownIndex && batch_->rows() != expected) {
               throw nb::value_error(
                   ("operator '" + name_ + "': " + std::to_string(expected) + " rows in, " + std::to_string(batch_->rows()) + " rows out")
                       .c_str());
             }
             return result;
           }) != nullptr;
  }

  bool mask_from_python(PyObject* result, std::size_t count, std::vector<std::uint8_t>& mask, std::size_t*) override {
    return mask_from_array(name_, result, count, mask);
  }

  std::int64_t submit(std::byte* out, std::int64_t capacity, rel_context* context) override {
    const std::unique_ptr<ArrowBatch> batch = std::move(batch_);
    std::size_t done = 0;
    while (true) {
      const std::size_t count = std::min(batch->rows() - done, static_cast<std::size_t>(capacity));
      if (batch->chunk() != nullptr && output_->has_text()) context->attach(batch->chunk());
      batch->read(done, count, out);
      done += count;
      if (done == batch->rows()) return static_cast<std::int64_t>(count);
      if (!context->flush(static_cast<std::int64_t>(count))) return REL_STOPPED;
    }
  }

 private:
  std::string name_;
  std::shared_ptr<const Schema> input_;
  std::shared_ptr<const Schema> output_;
  ArrowWriter writer_;
  std::unique_ptr<ArrowBatch> batch_;
};

}  // namespace

std::unique_ptr<RunView> make_arrow_view(const std::string& name, std::shared_ptr<const Schema> input,
                                         std::shared_ptr<const Schema> output) {
  return std::make_unique<ArrowView>(name, input, std::move(output));
}

}  // namespace rayelastic::python
