#include "rayelastic/arrow/arrow_sink.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "rayelastic/arrow/arrow_writer.hpp"

namespace rayelastic {

namespace {

struct ArrowSink {
  ArrowSink(std::shared_ptr<const Schema> input, ArrowConsumer consumer, std::shared_ptr<void> owner, std::size_t rows)
      : writer(input, rows), schema(std::move(input)), consume(consumer), user(std::move(owner)), batch_rows(rows) {}

  ArrowWriter writer;
  std::shared_ptr<const Schema> schema;
  ArrowConsumer consume;
  std::shared_ptr<void> user;
  std::size_t batch_rows;
};

// Why the batch was rejected; empty if it wasn't.
std::string hand_over(ArrowSink& sink) {
  ArrowSchema schema;
  ArrowArray array;
  export_schema(*sink.schema, &schema);
  sink.writer.take(&array);
  char error[4096] = "the batch was rejected";
  const int failed = sink.consume(sink.user.get(), &array, &schema, error, sizeof error);
  if (array.release != nullptr) array.release(&array);
  if (schema.release != nullptr) schema.release(&schema);
  return failed == 0 ? std::string() : std::string(error);
}

bool hand_over(ArrowSink& sink, rel_context* context) {
  std::string refusal = hand_over(sink);
  const bool taken = refusal.empty();
  if (!taken) context->fail(std::move(refusal));
  return taken;
}

std::int64_t write_batches(const void* in, std::int64_t n, void*, std::int64_t, void* state, rel_context* context) {
  auto& sink = *static_cast<ArrowSink*>(state);
  if (n == 0) return sink.writer.rows() == 0 || hand_over(sink, context) ? 0 : REL_FAILED(0);
  const auto* records = static_cast<const std::byte*>(in);
  const auto count = static_cast<std::size_t>(n);
  for (std::size_t done = 0; done < count;) {
    const std::size_t wanted = std::min(count - done, sink.batch_rows - sink.writer.rows());
    const std::size_t taken = sink.writer.append(records + done * sink.schema->record_size(), wanted);
    if (taken == 0 && sink.writer.rows() == 0) {
      context->fail("a text of 2 GiB or more doesn't fit into an Arrow column");
      return REL_FAILED(done);
    }
    done += taken;
    if ((taken < wanted || sink.writer.rows() == sink.batch_rows) && !hand_over(sink, context)) return REL_FAILED(done == 0 ? 0 : done - 1);
  }
  return 0;
}

}  // namespace

OperatorSpec make_arrow_sink(std::string name, std::shared_ptr<const Schema> input, ArrowConsumer consume, std::shared_ptr<void> user,
                             std::size_t batch_rows) {
  if (batch_rows == 0) throw std::invalid_argument("operator '" + name + "': batch_rows has to be positive");
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = write_batches;
  spec.flags = REL_SINK | REL_ON_FINISH;
  spec.input = input;
  spec.state = std::make_shared<ArrowSink>(std::move(input), consume, std::move(user), batch_rows);
  return spec;
}

std::string flush_arrow_sink(const OperatorSpec& sink) {
  auto& gathered = *static_cast<ArrowSink*>(sink.state.get());
  return gathered.writer.rows() == 0 ? std::string() : hand_over(gathered);
}

}  // namespace rayelastic
