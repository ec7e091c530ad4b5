#include "rayelastic/operators/text_source.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "check.hpp"
#include "fake_context.hpp"
#include "operators/line_reader.hpp"
#include "rayelastic/operators/count_sink.hpp"
#include "rayelastic/operators/sequence_source.hpp"

using namespace rayelastic;

namespace {

std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }
const auto kLine = schema_of({{"line", Type::String, false, "u", 0, -1}});

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rayelastic_test_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  [[nodiscard]] std::filesystem::path path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<std::string> lines_of(const std::vector<std::string>& paths, std::size_t chunk_bytes = kTextChunkBytes) {
  const std::shared_ptr<Operator> spec = make_text_source("text", kLine, {.paths = paths}, chunk_bytes);
  FakeContext context(spec, 7);
  CHECK(context.run_source() >= 0);
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < context.size(); ++i) lines.push_back(context.text(i, "line"));
  return lines;
}

// The rule in its plainest form.
std::vector<std::string> expected_lines(const std::string& content) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (content[i] != '\n' && content[i] != '\r') {
      line += content[i];
      continue;
    }
    if (content[i] == '\r' && i + 1 < content.size() && content[i + 1] == '\n') ++i;
    lines.push_back(std::exchange(line, ""));
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace

// What a source says whose file is changed when its first chunk has been read; nothing if it ends.
std::string problem_after(const std::function<void(const std::filesystem::path&)>& change) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.file("t", std::string(40'000, 'a') + "\n" + std::string(40'000, 'b') + "\n");
  LineReader reader({.paths = {path.string()}}, 1024);
  CHECK(static_cast<bool>(reader.next(0)));
  change(path);
  try {
    while (reader.next(0));
  } catch (const std::runtime_error& problem) {
    return problem.what();
  }
  return {};
}

TEST(a_file_that_shrinks_or_changes_while_it_is_read_fails_and_one_that_grows_does_not) {
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const auto shrunk = problem_after([](const auto& path) { std::filesystem::resize_file(path, 10); });
  CHECK(has(shrunk, "had 80002 bytes and has 10 now while it was read"));
  CHECK(has(problem_after([](const auto& path) { std::filesystem::remove(path); }), "was removed"));
  CHECK(has(problem_after([](const auto& path) {
              std::filesystem::copy_file(path, path.string() + "2");
              std::filesystem::rename(path.string() + "2", path);
            }),
            "was replaced by another file"));
  CHECK(has(problem_after([](const auto& path) { std::ofstream(path, std::ios::binary | std::ios::trunc) << std::string(90'000, 'c'); }),
            "was written anew"));
  CHECK(problem_after([](const auto& path) { std::ofstream(path, std::ios::binary | std::ios::app) << "more\n"; }).empty());
}

TEST(so_does_one_that_is_not_open_yet) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = {folder.file("a", "first\n"), folder.file("b", "second\nthird\n")};
  LineReader reader({.paths = paths}, 1024);
  CHECK(static_cast<bool>(reader.next(0)));
  std::filesystem::resize_file(paths[1], 7);
  CHECK_THROWS((void)reader.next(0), std::runtime_error);
}

TEST(lines_end_as_in_python) {
  const TemporaryFolder folder;
  using Lines = std::vector<std::string>;
  const auto lines = [&](const std::string& content) { return lines_of({folder.file("t", content)}); };
  CHECK(lines("") == Lines{});
  CHECK(lines("\n") == Lines{""});
  CHECK((lines("a\r\nb\rc\nd") == Lines{"a", "b", "c", "d"}));
  CHECK((lines("a\r") == Lines{"a"}));
  CHECK((lines("a\r\r\n\n\r") == Lines{"a", "", "", ""}));
  CHECK((lines("\xef\xbb\xbf"
               "a\x0b\x0c\x1c\u2028"
               "b\n") == Lines{"a\x0b\x0c\x1c\u2028"
                               "b"}));
  CHECK((lines("ok\nbad \xff\xe2\x82\nok") == Lines{"ok", "bad \xef\xbf\xbd\xef\xbf\xbd", "ok"}));
}

TEST(chunks_do_not_show) {
  const TemporaryFolder folder;
  std::mt19937_64 random(21);
  const std::vector<std::string> pieces = {"\n", "\r", "\r\n", "a", "word ", "\u00e9", "\U0001d11e", "a somewhat longer piece of a line",
                                           ""};
  for (int round = 0; round < 300; ++round) {
    std::string content;
    for (std::uint64_t i = random() % 60; i > 0; --i) content += pieces[random() % pieces.size()];
    const std::string path = folder.file("t", content);
    CHECK(lines_of({path}, 16 + random() % 50) == expected_lines(content));
  }
}

TEST(files_follow_each_other) {
  const TemporaryFolder folder;
  const std::vector<std::string> paths = {folder.file("1", "a\nb"), folder.file("2", ""), folder.file("3", "c\r"),
                                          folder.file("4", "\nd\n")};
  CHECK((lines_of(paths) == std::vector<std::string>{"a", "b", "c", "", "d"}));
  CHECK(lines_of({}).empty());
}

TEST(a_long_line_grows_its_chunk) {
  const TemporaryFolder folder;
  const std::string line(3'000'000, 'x');
  CHECK((lines_of({folder.file("t", "short\n" + line + "\nend")}) == std::vector<std::string>{"short", line, "end"}));
}

TEST(files_that_cannot_be_read_are_named) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path().string() + "/missing", folder.path().string()}) {
    const std::shared_ptr<Operator> spec = make_text_source("text", kLine, {.paths = {folder.file("t", "a\n"), path}});
    FakeContext context(spec);
    CHECK_EQ(context.run_source(), REL_FAILED(0));
    CHECK(context.message.find("'" + path + "'") != std::string::npos);
    CHECK_EQ(context.size(), 1U);
  }
  CHECK_THROWS(make_text_source("text", schema_of({{"n", Type::Int64, false, "l", 0, -1}}), {}), std::invalid_argument);
}

namespace {

// What a stream gives: a byte at a time, so that nothing can be told from the first one.
class Trickle final : public ByteStream {
 public:
  explicit Trickle(std::string content) : content_(std::move(content)) {}
  [[nodiscard]] std::size_t read(char* target, std::size_t) override {
    if (at_ == content_.size()) return 0;
    *target = content_[at_++];
    return 1;
  }

 private:
  std::string content_;
  std::size_t at_ = 0;
};

}  // namespace

TEST(packed_files_and_uris_come_by_a_stream) {
  const TemporaryFolder folder;
  const OpenStream open = [](const std::string& path) {
    return std::make_unique<Trickle>("\xef\xbb\xbfof " + path.substr(path.size() - 2) + "\nend");
  };
  for (const std::string& begins : {std::string("\x1f\x8b\x08"), std::string("BZh91AY&SY"), std::string("\xfd\x37zXZ\0", 6),
                                    std::string("\x28\xb5\x2f\xfd"), std::string("\x52*M\x18")}) {
    const std::string packed = folder.file(".p", begins + " and so on");
    const std::shared_ptr<Operator> spec =
        make_text_source("text", kLine, {.paths = {folder.file(".t", "a"), packed, "far://off/.u"}, .open = open});
    FakeContext context(spec);
    CHECK(context.run_source() >= 0);
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < context.size(); ++i) lines.push_back(context.text(i, "line"));
    CHECK((lines == std::vector<std::string>{"a", "of .p", "end", "of .u", "end"}));
    const std::shared_ptr<Operator> alone = make_text_source("text", kLine, {.paths = {packed}});
    FakeContext refusing(alone);
    CHECK_EQ(refusing.run_source(), REL_FAILED(0));
    CHECK(refusing.message.find(packed) != std::string::npos);
  }
  CHECK((lines_of({folder.file("t", "BZh9 is text\n*M")}) == std::vector<std::string>{"BZh9 is text", "*M"}));
}

TEST(a_pipe_is_read_as_it_comes_and_can_be_interrupted) {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "pipe").string();
  CHECK_EQ(::mkfifo(path.c_str(), 0600), 0);
  {
    const std::shared_ptr<Operator> spec = make_text_source("text", kLine, {.paths = {path}});
    FakeContext context(spec);
    std::thread writer([&path] { std::ofstream(path) << "one\ntwo\n"; });
    CHECK(context.run_source() >= 0);
    writer.join();
    CHECK_EQ(context.size(), 2U);
  }
  const std::shared_ptr<Operator> spec = make_text_source("text", kLine, {.paths = {path}});
  FakeContext context(spec);
  std::thread stopper([&spec] { spec->interrupt(); });  // nobody writes
  CHECK_EQ(context.run_source(), 0);
  stopper.join();
  CHECK(context.finished);
}

TEST(a_sequence_counts_and_shares_its_payload) {
  const auto schema = schema_of({{"value", Type::Int64, false, "l", 0, -1}, {"payload", Type::Binary, false, "z", 0, -1}});
  const std::shared_ptr<Operator> spec = make_sequence_source("numbers", schema, 100, 16384);
  FakeContext context(spec, 32);
  CHECK(context.run_source() >= 0);
  CHECK_EQ(context.size(), 100U);
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK_EQ(context.get<std::int64_t>(i, "value"), static_cast<std::int64_t>(i));
    CHECK(context.get<StringView>(i, "payload").pointer == context.get<StringView>(0, "payload").pointer);
  }
  CHECK_EQ(context.text(99, "payload"), std::string(16384, 'x'));
  CHECK_THROWS(make_sequence_source("numbers", schema, 1, 0), std::invalid_argument);
  const auto counter = std::make_shared<std::atomic<std::int64_t>>(0);
  const std::shared_ptr<Operator> sink = make_count_sink("count", schema, counter);
  FakeContext sink_context(sink);
  CHECK_EQ(sink_context.call(context.records.data(), 100), 0);
  CHECK_EQ(counter->load(), 100);
}

TEST(a_sequence_goes_on_from_a_value) {
  const auto schema = schema_of({{"value", Type::Int64, false, "l", 0, -1}});
  for (const std::int64_t next : {0, 1, 99, 100}) {
    const std::shared_ptr<Operator> spec = make_sequence_source("numbers", schema, 100, 0);
    seek_sequence(*spec, next);
    FakeContext context(spec, 32);
    CHECK(context.run_source() >= 0);
    CHECK_EQ(context.size(), static_cast<std::size_t>(100 - next));
    if (next < 100) CHECK_EQ(context.get<std::int64_t>(0, "value"), next);
  }
  const std::shared_ptr<Operator> spec = make_sequence_source("numbers", schema, 100, 0);
  CHECK_THROWS(seek_sequence(*spec, 101), std::invalid_argument);
  CHECK_THROWS(seek_sequence(*spec, -1), std::invalid_argument);
}

TEST(a_source_goes_on_from_a_place_near_where_it_was) {
  const TemporaryFolder folder;
  std::string first = "\xef\xbb\xbf";
  std::string second;
  for (int i = 0; i < 200; ++i) first += "line " + std::to_string(i) + (i % 3 == 0 ? "\r\n" : i % 3 == 1 ? "\n" : "\r");
  for (int i = 0; i < 100; ++i) second += (i % 7 == 0 ? "bad \xff " : "text ") + std::to_string(i) + "\n";
  const std::vector<std::string> paths = {folder.file("a", first), folder.file("empty", ""), folder.file("b", second + "no end")};
  const std::vector<std::string> all = lines_of(paths, 64);
  CHECK_EQ(all.size(), 301U);
  std::uint64_t farthest = 0;
  for (std::size_t given = 0; given <= all.size(); ++given) {
    const std::shared_ptr<Operator> was = make_text_source("text", kLine, {.paths = paths}, 64);
    FakeContext before(was, 1);
    for (std::size_t i = 0; i < given; ++i) {
      CHECK_EQ(before.call(nullptr, 0), 1);
    }
    const TextPlace place = text_place(*was).value();
    CHECK(place.lines <= given);
    farthest = std::max<std::uint64_t>(farthest, given - place.lines);
    const std::shared_ptr<Operator> now = make_text_source("text", kLine, {.paths = paths}, 64);
    seek_text(*now, place);
    CHECK_EQ(text_place(*now)->lines, place.lines);
    FakeContext after(now, 7);
    CHECK(after.run_source() >= 0);
    CHECK_EQ(after.size(), all.size() - place.lines);
    for (std::size_t i = 0; i < after.size(); ++i) CHECK_EQ(after.text(i, "line"), all[place.lines + i]);
  }
  CHECK(farthest < 64);  // lines of a chunk
}

REL_TEST_MAIN
