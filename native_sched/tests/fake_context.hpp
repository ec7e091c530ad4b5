// The engine's side of an operator call without an engine: collects what an operator gives, and runs an operator to its end.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

class FakeContext : public rel_context {
 public:
  explicit FakeContext(const std::shared_ptr<Operator>& of, std::size_t records = 64)
      : op(*of), capacity(records), stride(op.outputs().empty() ? 0 : op.outputs().front()->record_size()), out(capacity * stride) {}

  bool flush(std::int64_t n) override {
    collect(static_cast<std::size_t>(n));
    return !stopped;
  }
  void finish() override { finished = true; }
  void* allocate(std::size_t bytes) override {
    chunks.push_back(Chunk::allocate(bytes));
    return chunks.back()->data();
  }
  void attach(Chunk* chunk) override { chunks.push_back(ChunkRef::share(chunk)); }
  void fail(std::string text) override { message = std::move(text); }
  bool keep_text(void* field, const char* text, std::uint32_t bytes) override {
    op.keyed_state()->keep_text(field, text, bytes);
    return true;
  }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return {}; }
  void mark(Mark) override {}
  [[nodiscard]] bool stopping() const override { return stopped; }

  // One call; its result, and what it left in `out` collected. Without records: what the watermark says, but of a source.
  std::int64_t call(const void* in, std::int64_t n) {
    const auto room = static_cast<std::int64_t>(capacity);
    std::int64_t produced = 0;
    if (n > 0 || op.has_any(REL_SOURCE)) {
      produced = op.process(static_cast<const std::byte*>(in), n, out.data(), room, this);
    } else {
      produced = watermark() == kEndOfTime ? op.finish(out.data(), room, this) : op.on_watermark(watermark(), out.data(), room, this);
    }
    if (produced > 0) collect(static_cast<std::size_t>(produced));
    return produced;
  }

  // A source until it ends, fails or stops; the last result.
  std::int64_t run_source() {
    std::int64_t produced = 0;
    while (!finished && produced >= 0) produced = call(nullptr, 0);
    return produced;
  }

  [[nodiscard]] std::size_t size() const { return stride == 0 ? 0 : records.size() / stride; }
  [[nodiscard]] const std::byte* record(std::size_t i) const { return records.data() + i * stride; }

  template <typename Value>
  [[nodiscard]] Value get(std::size_t i, const std::string& field) const {
    Value value;
    std::memcpy(static_cast<void*>(&value), record(i) + op.outputs().front()->find(field)->offset, sizeof value);
    return value;
  }
  [[nodiscard]] std::string text(std::size_t i, const std::string& field) const { return std::string(get<StringView>(i, field).view()); }
  [[nodiscard]] bool is_null(std::size_t i, const std::string& field) const {
    return !op.outputs().front()->is_valid(record(i), *op.outputs().front()->find(field));
  }

  Operator& op;
  std::size_t capacity;
  std::size_t stride;
  std::vector<std::byte> out;
  std::vector<std::byte> records;
  std::vector<ChunkRef> chunks;
  std::string message;
  bool finished = false;
  bool stopped = false;

 private:
  void collect(std::size_t n) { records.insert(records.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n * stride)); }
};

}  // namespace rayelastic
