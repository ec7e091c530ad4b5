#include "operator/deep_copy.hpp"

#include <cstring>

#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

DeepCopy::DeepCopy(std::shared_ptr<const Schema> schema) : schema_(std::move(schema)) {
  for (const Field& field : schema_->fields()) {
    if (field.type == Type::String || field.type == Type::Binary) text_offsets_.push_back(field.offset);
  }
}

ChunkRef DeepCopy::copy(const Run& run) {
  records_.assign(run.records, run.records + run.count * run.stride);
  const auto visit = [&](auto&& each) {
    for (std::size_t index = 0; index < run.count; ++index) {
      for (const std::size_t offset : text_offsets_) {
        auto* text = reinterpret_cast<StringView*>(records_.data() + index * run.stride + offset);
        if (!text->is_inline()) each(*text);
      }
    }
  };
  std::size_t bytes = 0;
  visit([&](const StringView& text) { bytes += text.length; });
  if (bytes == 0) return {};
  ChunkRef chunk = Chunk::allocate(bytes);
  char* end = chunk->data();
  visit([&](StringView& text) {
    std::memcpy(end, text.pointer, text.length);
    text.pointer = end;
    end += text.length;
  });
  return chunk;
}

}  // namespace rayelastic
