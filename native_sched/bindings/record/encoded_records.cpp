#include "record/encoded_records.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "rayelastic/record/string_view.hpp"
#include "record/bytes.hpp"

namespace rayelastic::python {

namespace {

bool is_text(Type type) noexcept { return type == Type::String || type == Type::Binary; }
std::size_t long_text_bytes(const StringView& view) noexcept { return view.is_inline() ? 0 : view.length; }

}  // namespace

std::int64_t emit(const Schema& schema, EncodedRecords& encoded, std::byte* out, std::int64_t capacity, rel_context* context) {
  const std::size_t stride = schema.record_size();
  std::size_t done = 0;
  while (true) {
    const std::size_t batch = std::min(encoded.count - done, static_cast<std::size_t>(capacity));
    std::byte* records = encoded.records.data() + done * stride;
    if (!encoded.text.empty() && batch > 0) {
      // One exact allocation per submitted run, so that queues count the bytes that they really hold.
      std::size_t bytes = 0;
      for (const Field& field : schema.fields()) {
        if (!is_text(field.type)) continue;
        for (std::size_t i = 0; i < batch; ++i) bytes += long_text_bytes(load<StringView>(records + i * stride + field.offset));
      }
      if (bytes > 0) {
        auto* text = static_cast<char*>(context->allocate(bytes));
        if (text == nullptr) {
          context->fail("no memory for " + std::to_string(bytes) + " bytes of text");
          return REL_FAILED(0);
        }
        for (const Field& field : schema.fields()) {
          if (!is_text(field.type)) continue;
          for (std::size_t i = 0; i < batch; ++i) {
            std::byte* at = records + i * stride + field.offset;
            auto view = load<StringView>(at);
            if (view.is_inline()) continue;
            std::memcpy(text, encoded.text.data() + reinterpret_cast<std::uintptr_t>(view.pointer), view.length);
            view.pointer = text;
            store(at, view);
            text += view.length;
          }
        }
      }
    }
    if (batch > 0) std::memcpy(out, records, batch * stride);
    done += batch;
    if (done == encoded.count) return static_cast<std::int64_t>(batch);
    if (!context->flush(static_cast<std::int64_t>(batch))) return REL_STOPPED;
  }
}

}  // namespace rayelastic::python
