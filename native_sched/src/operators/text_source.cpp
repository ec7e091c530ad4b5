#include "rayelastic/operators/text_source.hpp"

#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "operators/line_reader.hpp"
#include "rayelastic/operators/time/splits.hpp"
#include "rayelastic/record/string_view.hpp"

namespace rayelastic {

namespace {

struct TextSource {
  TextSource(TextFiles names, std::size_t chunk_bytes) : files(names.paths.size()), reader(std::move(names), chunk_bytes) {}

  std::size_t files;
  LineReader reader;
  std::optional<std::size_t> split;  // the file announced last
  ChunkRef chunk;
  const char* at = nullptr;
  const char* end = nullptr;
  const char* newline = nullptr;   // the first \n at or after `at`, or end
  const char* carriage = nullptr;  // the first \r at or after `at`, or end
  std::size_t stride = 0;
  std::uint64_t lines = 0;  // given
  TextPlace place;          // of the chunk, or of the file if that can't be sought in

  const char* find(char byte, const char* from) const noexcept {
    const void* found = from == end ? nullptr : std::memchr(from, byte, static_cast<std::size_t>(end - from));
    return found == nullptr ? end : static_cast<const char*>(found);
  }

  // Each file is a split. Who begins with a later one says that those before have ended.
  void tell_split(rel_context* context) {
    const std::size_t file = reader.file();
    if (files < 2 || split == file) return;
    const auto tell = [context](std::size_t number, SplitChange change) {
      context->mark(split_mark(static_cast<std::int64_t>(number), change));
    };
    for (std::size_t later = split.has_value() ? files : file + 1; later < files; ++later) tell(later, SplitChange::Waits);
    tell(file, SplitChange::Now);
    for (std::size_t ended = split.value_or(0); ended < file; ++ended) tell(ended, SplitChange::End);
    split = file;
  }

  // Each byte is searched twice at memchr's speed: text without \r costs one long search for it.
  StringView next_line() noexcept {
    if (newline < at) newline = find('\n', at);
    if (carriage < at) carriage = find('\r', at);
    const char* stop = newline < carriage ? newline : carriage;
    const StringView line(at, static_cast<std::uint32_t>(stop - at));
    at = stop == end ? end : stop + (stop == carriage && newline != end && newline == carriage + 1 ? 2 : 1);
    return line;
  }
};

std::int64_t read_lines(const void*, std::int64_t, void* out, std::int64_t capacity, void* state, rel_context* context) {
  auto& source = *static_cast<TextSource*>(state);
  if (source.at == source.end) {
    try {
      source.chunk = source.reader.next(source.lines);
    } catch (const std::runtime_error& problem) {
      context->fail(problem.what());
      return REL_FAILED(0);
    }
    if (!source.chunk) {
      context->finish();
      return 0;
    }
    if (source.reader.is_seekable()) {
      source.place = {.file = source.reader.file(), .byte = source.reader.byte(), .lines = source.lines};
    } else if (source.reader.file() != source.place.file) {
      source.place = {.file = source.reader.file(), .byte = 0, .lines = source.lines};
    }
    source.tell_split(context);
    if (source.reader.repaired() > 0) context->count(Tally::Repaired, source.reader.repaired());
    source.at = source.reader.text().data();
    source.end = source.at + source.reader.text().size();
    source.newline = source.find('\n', source.at);
    source.carriage = source.find('\r', source.at);
  }
  context->attach(source.chunk.get());
  auto* record = static_cast<std::byte*>(out);
  std::int64_t count = 0;
  for (; count < capacity && source.at != source.end; ++count, record += source.stride) {
    const StringView line = source.next_line();
    std::memcpy(record, &line, sizeof line);
  }
  source.lines += static_cast<std::uint64_t>(count);
  return count;
}

}  // namespace

OperatorSpec make_text_source(std::string name, std::shared_ptr<const Schema> output, TextFiles files, std::size_t chunk_bytes) {
  if (output->fields().size() != 1 || output->fields()[0].type != Type::String || output->fields()[0].nullable) {
    throw std::invalid_argument("operator '" + name + "': a text source emits one string field");
  }
  auto source = std::make_shared<TextSource>(std::move(files), chunk_bytes);
  source->stride = output->record_size();
  OperatorSpec spec;
  spec.name = std::move(name);
  spec.process = read_lines;
  spec.flags = REL_SOURCE;
  spec.state = std::move(source);
  spec.output = std::move(output);
  spec.interrupt = [](void* state) { static_cast<TextSource*>(state)->reader.interrupt(); };
  spec.model = ThreadingModel::Dedicated;
  return spec;
}

TextPlace text_place(const OperatorSpec& source) { return static_cast<const TextSource*>(source.state.get())->place; }

void seek_text(const OperatorSpec& source, const TextPlace& place) {
  auto& text = *static_cast<TextSource*>(source.state.get());
  text.reader.seek(place.file, place.byte);
  text.place = place;
  text.lines = place.lines;
}

}  // namespace rayelastic
