#include "rayelastic/arrow/arrow_sink.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "rayelastic/arrow/arrow_writer.hpp"

namespace rayelastic {

namespace {

class ArrowSink final : public Operator {
 public:
  ArrowSink(std::string name, const std::shared_ptr<const Schema>& input, ArrowConsumer consume, std::shared_ptr<void> user,
            std::size_t batch_rows)
      : Operator(std::move(name), {input}, {}, REL_SINK | REL_ON_FINISH),
        writer_(input, batch_rows),
        consume_(consume),
        user_(std::move(user)),
        batch_rows_(batch_rows) {}

  std::int64_t process(const std::byte* in, std::int64_t n, std::byte*, std::int64_t, rel_context* context) override {
    const auto count = static_cast<std::size_t>(n);
    for (std::size_t done = 0; done < count;) {
      const std::size_t wanted = std::min(count - done, batch_rows_ - writer_.rows());
      const std::size_t taken = writer_.append(in + done * inputs().front()->record_size(), wanted);
      if (taken == 0 && writer_.rows() == 0) {
        context->fail("a text of 2 GiB or more doesn't fit into an Arrow column");
        return REL_FAILED(done);
      }
      done += taken;
      if ((taken < wanted || writer_.rows() == batch_rows_) && !flush(context)) return REL_FAILED(done == 0 ? 0 : done - 1);
    }
    return 0;
  }
  std::int64_t finish(std::byte*, std::int64_t, rel_context* context) override { return flush(context) ? 0 : REL_FAILED(0); }

  // Why the batch was rejected; empty if it wasn't.
  [[nodiscard]] std::string flush() {
    if (writer_.rows() == 0) return {};
    ArrowSchema schema;
    ArrowArray array;
    export_schema(*inputs().front(), &schema);
    writer_.take(&array);
    char error[4096] = "the batch was rejected";
    const int failed = consume_(user_.get(), &array, &schema, error, sizeof error);
    if (array.release != nullptr) array.release(&array);
    if (schema.release != nullptr) schema.release(&schema);
    return failed == 0 ? std::string() : std::string(error);
  }

 private:
  [[nodiscard]] bool flush(rel_context* context) {
    std::string problem = flush();
    const bool accepted = problem.empty();
    if (!accepted) context->fail(std::move(problem));
    return accepted;
  }

  ArrowWriter writer_;
  const ArrowConsumer consume_;
  const std::shared_ptr<void> user_;
  const std::size_t batch_rows_;
};

}  // namespace

std::shared_ptr<Operator> make_arrow_sink(std::string name, std::shared_ptr<const Schema> input, ArrowConsumer consume,
                                          std::shared_ptr<void> user, std::size_t batch_rows) {
  if (batch_rows == 0) throw std::invalid_argument("operator '" + name + "': batch_rows has to be positive");
  return std::make_shared<ArrowSink>(std::move(name), input, consume, std::move(user), batch_rows);
}

std::string flush_arrow_sink(Operator& op) {
  auto* const sink = dynamic_cast<ArrowSink*>(&op);
  return sink == nullptr ? std::string() : sink->flush();
}

}  // namespace rayelastic
