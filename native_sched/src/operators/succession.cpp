#include "rayelastic/operators/succession.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "operators/joined_splits.hpp"

namespace rayelastic {

void Succession::begin(bool with_second, std::int64_t skipped) {
  const Lock lock(mutex_);
  if (with_second) seam_ = 0;
  skipped_ = skipped;
  changed_.notify_all();
}

std::optional<std::int64_t> Succession::seam() const {
  const Lock lock(mutex_);
  return seam_;
}

bool Succession::wait() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REL_HELD(mutex_) { return interrupted_ || seam_.has_value(); });
  return !interrupted_;
}

void Succession::interrupt() {
  const Lock lock(mutex_);
  interrupted_ = true;
  changed_.notify_all();
}

std::int64_t Succession::skipped() const {
  const Lock lock(mutex_);
  return skipped_;
}

void Succession::turn(std::int64_t records) {
  const Lock lock(mutex_);
  seam_ = records;
  changed_.notify_all();
}

bool Succession::is_interrupted() const {
  const Lock lock(mutex_);
  return interrupted_;
}

namespace {

// Stands between one of the sources and the engine.
class PartContext final : public rel_context {
 public:
  PartContext(rel_context& context, JoinedSplits* splits, std::size_t part) : context_(context), splits_(splits), part_(part) {}

  bool flush(std::int64_t n) override {
    records += n;
    return context_.flush(n);
  }
  void finish() override { finished = true; }
  void* allocate(std::size_t bytes) override { return context_.allocate(bytes); }
  void attach(Chunk* chunk) override { context_.attach(chunk); }
  void fail(std::string message) override { context_.fail(std::move(message)); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return context_.input_chunks(); }
  void mark(Mark mark) override {
    if (mark.kind != MarkKind::Split) {
      context_.mark(mark);
    } else if (splits_ != nullptr) {
      splits_->pass(part_, mark, &context_);
    }
  }
  bool emit(std::int32_t port, const void* what, std::int64_t n) override {
    records += n;
    return context_.emit(port, what, n);
  }
  void count(Tally what, std::int64_t n) override { context_.count(what, n); }
  [[nodiscard]] bool stopping() const override { return context_.stopping(); }

  std::int64_t records = 0;  // that went out in the call
  bool finished = false;

 private:
  rel_context& context_;
  JoinedSplits* const splits_;  // null: splits aren't announced
  const std::size_t part_;
};

class SuccessionOperator final : public Operator {
 public:
  SuccessionOperator(std::string name, std::array<std::shared_ptr<Operator>, 2> parts, std::array<bool, 2> tells,
                     std::shared_ptr<Succession> succession)
      : Operator(std::move(name), {}, parts.front()->outputs(), REL_SOURCE),
        parts_(std::move(parts)),
        tells_(tells.front() || tells.back()),
        splits_({tells.front(), tells.back()}),
        succession_(std::move(succession)) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    if (!std::exchange(began_, true)) {
      part_ = succession_->seam().has_value() ? 1 : 0;
      enter(context);
    }
    PartContext within(*context, tells_ ? &splits_ : nullptr, part_);
    const std::int64_t left = parts_.at(part_)->process(nullptr, 0, out, capacity, &within);
    if (left < 0) return left;
    records_ += within.records + left;
    if (!within.finished) return left;
    if (part_ == 1 || succession_->is_interrupted()) {
      context->finish();
      return left;
    }
    if (const std::int64_t missing = succession_->skipped() - records_; missing > 0) {
      context->fail("ended " + std::to_string(missing) + " tuples before where the job was stopped: its input is shorter than it was then");
      return REL_FAILED(0);
    }
    if (left > 0 && !context->flush(left)) return REL_STOPPED;
    part_ = 1;
    enter(context);
    if (tells_) splits_.end(0, context);  // behind the second's beginning: the watermark doesn't advance by it
    succession_->turn(records_);
    return 0;
  }
  void interrupt() override {
    succession_->interrupt();
    for (const auto& part : parts_) part->interrupt();
  }

 private:
  void enter(rel_context* context) {
    if (tells_) splits_.enter(part_, context);
  }

  const std::array<std::shared_ptr<Operator>, 2> parts_;
  const bool tells_;
  JoinedSplits splits_;
  const std::shared_ptr<Succession> succession_;
  bool began_ = false;
  std::size_t part_ = 0;
  std::int64_t records_ = 0;  // of this run
};

}  // namespace

std::shared_ptr<Operator> make_succession(std::string name, std::shared_ptr<Operator> first, std::shared_ptr<Operator> second,
                                          bool tells_first, bool tells_second, std::shared_ptr<Succession> succession) {
  const auto refuse = [&name](const char* why) { throw std::invalid_argument("operator '" + name + "': " + why); };
  for (const auto& part : {first, second}) {
    if (!part->has_any(REL_SOURCE) || part->outputs().size() != 1) refuse("what comes in succession has to be a source");
    if (part->has_any(REL_NEEDS_TOKEN | REL_BESIDE_TOKEN)) refuse("a source in Python can't come in succession");
  }
  if (first->outputs().front()->record_size() != second->outputs().front()->record_size()) refuse("the sources have different schemas");
  return std::make_shared<SuccessionOperator>(std::move(name), std::array{std::move(first), std::move(second)},
                                              std::array{tells_first, tells_second}, std::move(succession));
}

}  // namespace rayelastic
