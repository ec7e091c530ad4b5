#include "rayelastic/operators/sequence_source.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

namespace {

class SequenceSource final : public Operator {
 public:
  SequenceSource(std::string name, std::shared_ptr<const Schema> output, std::int64_t count, std::size_t payload_bytes)
      : Operator(std::move(name), {}, {std::move(output)}, REL_SOURCE),
        count_(count),
        stride_(outputs().front()->record_size()),
        value_offset_(outputs().front()->fields()[0].offset) {
    if (payload_bytes == 0) return;
    chunk_ = Chunk::allocate(payload_bytes);
    std::memset(chunk_->data(), 'x', payload_bytes);
    payload_ = StringView(chunk_->data(), static_cast<std::uint32_t>(payload_bytes));
    payload_offset_ = outputs().front()->fields()[1].offset;
  }

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    const std::int64_t n = std::min(capacity, count_ - next_);
    for (std::int64_t i = 0; i < n; ++i, out += stride_) {
      const std::int64_t value = next_ + i;
      std::memcpy(out + value_offset_, &value, sizeof value);
      if (chunk_) std::memcpy(out + payload_offset_, &payload_, sizeof payload_);
    }
    next_ += n;
    if (chunk_ && !payload_.is_inline()) context->attach(chunk_.get());
    if (next_ == count_) context->finish();
    return n;
  }
  void seek(std::int64_t next) {
    if (next < 0 || next > count_) throw std::invalid_argument("operator '" + name() + "': the place is outside of the sequence");
    next_ = next;
  }

 private:
  std::int64_t next_ = 0;
  const std::int64_t count_;
  const std::size_t stride_;
  const std::size_t value_offset_;
  std::size_t payload_offset_ = 0;
  StringView payload_;
  ChunkRef chunk_;  // none without payload
};

}  // namespace

std::shared_ptr<Operator> make_sequence_source(std::string name, std::shared_ptr<const Schema> output, std::int64_t count,
                                               std::size_t payload_bytes) {
  const auto refuse = [&name](const char* why) { throw std::invalid_argument("operator '" + name + "': " + why); };
  const std::vector<Field>& fields = output->fields();
  const std::size_t expected = payload_bytes > 0 ? 2 : 1;
  if (count < 0) refuse("a sequence can't have a negative count");
  if (payload_bytes > std::numeric_limits<std::uint32_t>::max()) refuse("a payload has to be smaller than 4 GiB");
  if (fields.size() != expected || fields[0].type != Type::Int64 || fields[0].nullable)
    refuse("a sequence emits an int64, and a payload if payload_bytes > 0");
  if (expected == 2 && ((fields[1].type != Type::String && fields[1].type != Type::Binary) || fields[1].nullable))
    refuse("the payload has to be binary or string");
  return std::make_shared<SequenceSource>(std::move(name), std::move(output), count, payload_bytes);
}

void seek_sequence(Operator& source, std::int64_t next) {
  auto* const sequence = dynamic_cast<SequenceSource*>(&source);
  if (sequence == nullptr) throw std::invalid_argument("operator '" + source.name() + "' is no sequence");
  sequence->seek(next);
}

}  // namespace rayelastic
