#include "rayelastic/arrow/arrow_feeder.hpp"

#include <algorithm>
#include <utility>

namespace rayelastic {

ArrowFeeder::ArrowFeeder(std::shared_ptr<const Schema> schema, std::size_t capacity_bytes, std::vector<bool> unread)
    : schema_(std::move(schema)), capacity_bytes_(capacity_bytes), unread_(std::move(unread)) {}

bool ArrowFeeder::push(ArrowArray* array, ArrowSchema* arrow) {
  const auto release_schema = [](ArrowSchema* schema) {
    if (schema->release != nullptr) schema->release(schema);
  };
  const std::unique_ptr<ArrowSchema, decltype(release_schema)> owned(arrow, release_schema);
  auto batch = std::make_unique<ArrowBatch>(schema_, array, *arrow, unread_);  // declared before the lock: dropped after it
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

class ArrowSource final : public Operator {
 public:
  ArrowSource(std::string name, std::shared_ptr<ArrowFeeder> feeder)
      : Operator(std::move(name), {}, {feeder->schema()}, REL_SOURCE), feeder_(std::move(feeder)) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    if (batch_ == nullptr) {
      Fed fed = feeder_->next();
      if (fed.mark.has_value()) {
        context->mark(*fed.mark);
        return 0;
      }
      batch_ = std::move(fed.batch);
      next_ = 0;
    }
    if (batch_ == nullptr) {
      if (const auto failure = feeder_->failure()) {
        context->fail(*failure);
        return REL_FAILED(0);
      }
      context->finish();  // an interrupted source ends, too: the engine drains or drops what it has read
      return 0;
    }
    const std::size_t count = std::min(static_cast<std::size_t>(capacity), batch_->rows() - next_);
    batch_->read(next_, count, out);
    if (feeder_->schema()->has_text()) context->attach(batch_->chunk());
    next_ += count;
    if (next_ == batch_->rows()) batch_.reset();
    return static_cast<std::int64_t>(count);
  }
  void interrupt() override { feeder_->interrupt(); }

 private:
  const std::shared_ptr<ArrowFeeder> feeder_;
  std::unique_ptr<ArrowBatch> batch_;
  std::size_t next_ = 0;  // row of batch_
};

}  // namespace

std::shared_ptr<Operator> make_arrow_source(std::string name, std::shared_ptr<ArrowFeeder> feeder) {
  return std::make_shared<ArrowSource>(std::move(name), std::move(feeder));
}

}  // namespace rayelastic
