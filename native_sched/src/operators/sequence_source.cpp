#include "rayelastic/operators/sequence_source.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

namespace {

struct Sequence {
  std::int64_t next = 0;
  std::int64_t count = 0;
  std::size_t stride = 0;
  std::size_t value_offset = 0;
  std::size_t payload_offset = 0;
  StringView payload;
  ChunkRef chunk;  // none without payload
};

std::int64_t give_next(const void*, std::int64_t, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& sequence = *static_cast<Sequence*>(state);
  const std::int64_t n = std::min(capacity, sequence.count - sequence.next);
  auto* record = static_cast<std::byte*>(out);
  for (std::int64_t i = 0; i < n; ++i, record += sequence.stride) {
    const std::int64_t value = sequence.next + i;
    std::memcpy(record + sequence.value_offset, &value, sizeof value);
    if (sequence.chunk) std::memcpy(record + sequence.payload_offset, &sequence.payload, sizeof sequence.payload);
  }
  sequence.next += n;
  if (sequence.chunk && !sequence.payload.is_inline()) context->attach(sequence.chunk.get());
  if (sequence.next == sequence.count) context->finish();
  return n;
}

}  // namespace

OperatorSpec make_sequence_source(std::string name, std::shared_ptr<const Schema> output, std::int64_t count, std::size_t payload_bytes) {
  const auto refuse = [&name](const char* why) { throw std::invalid_argument("operator '" + name + "': " + why); };
  const std::vector<Field>& fields = output->fields();
  const std::size_t expected = payload_bytes > 0 ? 2 : 1;
  if (count < 0) refuse("a sequence can't have a negative count");
  if (payload_bytes > std::numeric_limits<std::uint32_t>::max()) refuse("a payload has to be smaller than 4 GiB");
  if (fields.size() != expected || fields[0].type != Type::Int64 || fields[0].nullable)
    refuse("a sequence emits an int64, and a payload if payload_bytes > 0");
  if (expected == 2 && ((fields[1].type != Type::String && fields[1].type != Type::Binary) || fields[1].nullable))
    refuse("the payload has to be binary or string");

  auto sequence = std::make_shared<Sequence>();
  sequence->count = count;
  sequence->stride = output->record_size();
  sequence->value_offset = fields[0].offset;
  if (payload_bytes > 0) {
    sequence->chunk = Chunk::allocate(payload_bytes);
    std::memset(sequence->chunk->data(), 'x', payload_bytes);
    sequence->payload = StringView(sequence->chunk->data(), static_cast<std::uint32_t>(payload_bytes));
    sequence->payload_offset = fields[1].offset;
  }
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = give_next;
  spec.flags = REL_SOURCE;
  spec.state = std::move(sequence);
  spec.output = std::move(output);
  spec.model = ThreadingModel::Dedicated;
  return spec;
}

void seek_sequence(const OperatorSpec& source, std::int64_t next) {
  auto& sequence = *static_cast<Sequence*>(source.state.get());
  if (next < 0 || next > sequence.count)
    throw std::invalid_argument("operator '" + source.name + "': the place is outside of the sequence");
  sequence.next = next;
}

}  // namespace rayelastic
