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

class TextSource final : public Operator {
 public:
  TextSource(std::string name, std::shared_ptr<const Schema> output, TextFiles files, std::size_t chunk_bytes)
      : Operator(std::move(name), {}, {std::move(output)}, REL_SOURCE),
        stride_(outputs().front()->record_size()),
        files_(files.paths.size()),
        reader_(std::move(files), chunk_bytes) {}

  std::int64_t process(const std::byte*, std::int64_t, std::byte* out, std::int64_t capacity, rel_context* context) override {
    if (at_ == end_) {
      try {
        chunk_ = reader_.next(lines_);
      } catch (const std::runtime_error& problem) {
        context->fail(problem.what());
        return REL_FAILED(0);
      }
      if (!chunk_) {
        context->finish();
        return 0;
      }
      begin_chunk(context);
    }
    context->attach(chunk_.get());
    std::int64_t count = 0;
    for (; count < capacity && at_ != end_; ++count, out += stride_) {
      const StringView line = next_line();
      std::memcpy(out, &line, sizeof line);
    }
    lines_ += static_cast<std::uint64_t>(count);
    return count;
  }
  void interrupt() override { reader_.interrupt(); }

  [[nodiscard]] const TextPlace& place() const noexcept { return place_; }
  void seek(const TextPlace& place) {
    reader_.seek(place.file, place.byte);
    place_ = place;
    lines_ = place.lines;
  }

 private:
  void begin_chunk(rel_context* context) {
    if (reader_.is_seekable()) {
      place_ = {.file = reader_.file(), .byte = reader_.byte(), .lines = lines_};
    } else if (reader_.file() != place_.file) {
      place_ = {.file = reader_.file(), .byte = 0, .lines = lines_};
    }
    announce_split(context);
    if (reader_.repaired() > 0) context->count(Tally::Repaired, reader_.repaired());
    at_ = reader_.text().data();
    end_ = at_ + reader_.text().size();
    newline_ = find('\n', at_);
    carriage_ = find('\r', at_);
  }

  [[nodiscard]] const char* find(char byte, const char* from) const noexcept {
    const void* found = from == end_ ? nullptr : std::memchr(from, byte, static_cast<std::size_t>(end_ - from));
    return found == nullptr ? end_ : static_cast<const char*>(found);
  }

  // Each file is a split. A source that begins with a later one announces that those before have ended.
  void announce_split(rel_context* context) {
    const std::size_t file = reader_.file();
    if (files_ < 2 || split_ == file) return;
    const auto announce = [context](std::size_t number, SplitChange change) {
      context->mark(split_mark(static_cast<std::int64_t>(number), change));
    };
    for (std::size_t later = split_.has_value() ? files_ : file + 1; later < files_; ++later) announce(later, SplitChange::Waits);
    announce(file, SplitChange::Now);
    for (std::size_t ended = split_.value_or(0); ended < file; ++ended) announce(ended, SplitChange::End);
    split_ = file;
  }

  // Each byte is searched twice at memchr's speed: text without \r costs one long search for it.
  [[nodiscard]] StringView next_line() noexcept {
    if (newline_ < at_) newline_ = find('\n', at_);
    if (carriage_ < at_) carriage_ = find('\r', at_);
    const char* stop = newline_ < carriage_ ? newline_ : carriage_;
    const StringView line(at_, static_cast<std::uint32_t>(stop - at_));
    at_ = stop == end_ ? end_ : stop + (stop == carriage_ && newline_ != end_ && newline_ == carriage_ + 1 ? 2 : 1);
    return line;
  }

  const std::size_t stride_;
  const std::size_t files_;
  LineReader reader_;
  std::optional<std::size_t> split_;  // the file announced last
  ChunkRef chunk_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* newline_ = nullptr;   // the first \n at or after at_, or end_
  const char* carriage_ = nullptr;  // the first \r at or after at_, or end_
  std::uint64_t lines_ = 0;         // emitted
  TextPlace place_;                 // of the chunk, or of the file if that can't be sought in
};

}  // namespace

std::shared_ptr<Operator> make_text_source(std::string name, std::shared_ptr<const Schema> output, TextFiles files,
                                           std::size_t chunk_bytes) {
  if (output->fields().size() != 1 || output->fields()[0].type != Type::String || output->fields()[0].nullable) {
    throw std::invalid_argument("operator '" + name + "': a text source emits one string field");
  }
  return std::make_shared<TextSource>(std::move(name), std::move(output), std::move(files), chunk_bytes);
}

std::optional<TextPlace> text_place(const Operator& source) {
  const auto* const text = dynamic_cast<const TextSource*>(&source);
  return text == nullptr ? std::nullopt : std::optional(text->place());
}

void seek_text(Operator& source, const TextPlace& place) {
  auto* const text = dynamic_cast<TextSource*>(&source);
  if (text == nullptr) throw std::invalid_argument("operator '" + source.name() + "' is no text source");
  text->seek(place);
}

}  // namespace rayelastic
