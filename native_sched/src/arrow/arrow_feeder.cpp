#include "rayelastic/arrow/arrow_feeder.hpp"

#include <algorithm>
#include <utility>

namespace rayelastic {

ArrowFeeder::ArrowFeeder(std::shared_ptr<const Schema> schema, std::size_t capacity_bytes)
    : schema_(std::move(schema)), capacity_bytes_(capacity_bytes) {}

bool ArrowFeeder::push(ArrowArray* array, ArrowSchema* arrow) {
  const auto release_schema = [](ArrowSchema* schema) {
    if (schema->release != nullptr) schema->release(schema);
  };
  const std::unique_ptr<ArrowSchema, decltype(release_schema)> owned(arrow, release_schema);
  auto batch = std::make_unique<ArrowBatch>(schema_, array, *arrow);  // declared before the lock: dropped after it
  if (batch->rows() == 0) return true;
  Lock lock(mutex_);
  const auto closed = [this]() REL_HELD(mutex_) { return interrupted_ || finished_ || failure_.has_value(); };
  room_.wait(lock, [&]() REL_HELD(mutex_) { return closed() || bytes_ == 0 || bytes_ + batch->bytes() <= capacity_bytes_; });
  if (closed()) return false;
  bytes_ += batch->bytes();
  fed_.push_back({std::move(batch), std::nullopt});
  work_.notify_one();
  return true;
}

void ArrowFeeder::mark(Mark mark) {
  const Lock lock(mutex_);
  fed_.push_back({nullptr, mark});
  work_.notify_one();
}

void ArrowFeeder::finish() {
  const Lock lock(mutex_);
  finished_ = true;
  work_.notify_all();
  room_.notify_all();
}

void ArrowFeeder::fail(std::string message) {
  const Lock lock(mutex_);
  if (!failure_.has_value()) failure_ = std::move(message);
  work_.notify_all();
  room_.notify_all();
}

void ArrowFeeder::interrupt() {
  std::deque<Fed> dropped;  // released outside of the lock: it may call foreign code
  const Lock lock(mutex_);
  interrupted_ = true;
  dropped.swap(fed_);
  bytes_ = 0;
  work_.notify_all();
  room_.notify_all();
}

Fed ArrowFeeder::next() {
  Lock lock(mutex_);
  work_.wait(lock, [this]() REL_HELD(mutex_) { return interrupted_ || failure_.has_value() || finished_ || !fed_.empty(); });
  if (interrupted_ || failure_.has_value() || fed_.empty()) return {};
  Fed fed = std::move(fed_.front());
  fed_.pop_front();
  bytes_ -= fed.batch == nullptr ? 0 : fed.batch->bytes();
  room_.notify_all();
  return fed;
}

std::optional<std::string> ArrowFeeder::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

std::size_t ArrowFeeder::queued_bytes() const {
  const Lock lock(mutex_);
  return bytes_;
}

namespace {

struct ArrowSource {
  std::shared_ptr<ArrowFeeder> feeder;
  std::unique_ptr<ArrowBatch> batch;
  std::size_t next = 0;  // row of batch
};

std::int64_t read_batch(const void*, std::int64_t, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& source = *static_cast<ArrowSource*>(state);
  if (source.batch == nullptr) {
    Fed fed = source.feeder->next();
    if (fed.mark.has_value()) {
      context->mark(*fed.mark);
      return 0;
    }
    source.batch = std::move(fed.batch);
    source.next = 0;
  }
  if (source.batch == nullptr) {
    if (const auto failure = source.feeder->failure()) {
      context->fail(*failure);
      return REL_FAILED(0);
    }
    context->finish();  // an interrupted source ends, too: what it has read is drained or dropped by the engine
    return 0;
  }
  const std::size_t count = std::min(static_cast<std::size_t>(capacity), source.batch->rows() - source.next);
  source.batch->read(source.next, count, static_cast<std::byte*>(out));
  if (source.feeder->schema()->has_text()) context->attach(source.batch->chunk());
  source.next += count;
  if (source.next == source.batch->rows()) source.batch.reset();
  return static_cast<std::int64_t>(count);
}

}  // namespace

OperatorSpec make_arrow_source(std::string name, std::shared_ptr<ArrowFeeder> feeder) {
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = read_batch;
  spec.flags = REL_SOURCE;
  spec.output = feeder->schema();
  spec.state = std::make_shared<ArrowSource>(ArrowSource{std::move(feeder), nullptr, 0});
  spec.interrupt = [](void* state) { static_cast<ArrowSource*>(state)->feeder->interrupt(); };
  spec.model = ThreadingModel::Dedicated;
  return spec;
}

}  // namespace rayelastic
