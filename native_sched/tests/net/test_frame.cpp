// The frame codec as pure functions: what was encoded comes back, and what was not is refused with its reason (D4, D6, R6).
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "rayelastic/net/frame.hpp"
#include "rayelastic/net/frame_checksum.hpp"

using namespace rayelastic;

namespace {

std::shared_ptr<const Schema> make_schema() {
  return std::make_shared<const Schema>(std::vector<Field>{
      {.name = "word", .type = Type::String, .nullable = false, .format = "u"},
      {.name = "count", .type = Type::Int64, .nullable = false, .format = "l"},
      {.name = "line", .type = Type::String, .nullable = true, .format = "u"},
      {.name = "flag", .type = Type::Bool, .nullable = true, .format = "b"},
  });
}

// Records of the schema above, with the text that they point to.
struct Records {
  std::shared_ptr<const Schema> schema = make_schema();
  std::vector<std::byte> bytes;

  [[nodiscard]] std::size_t count() const { return bytes.size() / schema->record_size(); }
  [[nodiscard]] const std::byte* at(std::size_t i) const { return bytes.data() + i * schema->record_size(); }

  void add(const StringView& word, std::int64_t number, const StringView* line, int flag = 1) {
    const std::size_t start = bytes.size();
    bytes.resize(start + schema->record_size());
    std::byte* record = bytes.data() + start;
    const auto& fields = schema->fields();
    std::memcpy(record + fields[0].offset, &word, sizeof word);
    std::memcpy(record + fields[1].offset, &number, sizeof number);
    unsigned valid = 0;
    if (line != nullptr) {
      std::memcpy(record + fields[2].offset, line, sizeof *line);
      valid |= 1;
    } else {
      std::memset(record + fields[2].offset, 0xAB, sizeof(StringView));  // rubbish under a null
    }
    record[fields[3].offset] = static_cast<std::byte>(flag);
    if (flag <= 1) valid |= 2;
    record[schema->validity_offset()] = static_cast<std::byte>(valid);
  }
};

StringView view_of(const std::string& text) { return {text.data(), static_cast<std::uint32_t>(text.size())}; }

// A Records frame as bytes of its three parts.
struct Wire {
  FrameHeader header;
  std::vector<std::byte> records;
  std::vector<char> heap;

  explicit Wire(const FrameBody& body, std::uint64_t sequence = 5)
      : records(body.records().begin(), body.records().end()), heap(body.heap().begin(), body.heap().end()) {
    header = {.kind = FrameKind::Records,
              .checksummed = true,
              .sequence = sequence,
              .records = static_cast<std::uint32_t>(body.count()),
              .record_bytes = static_cast<std::uint32_t>(body.records().size() / body.count()),
              .heap_bytes = static_cast<std::uint32_t>(heap.size())};
    header.checksum = checksum_of(header, records, heap);
  }
};

std::string text_at(const Schema& schema, const std::byte* record, const char* field) {
  StringView view;
  std::memcpy(static_cast<void*>(&view), record + schema.find(field)->offset, sizeof view);
  return std::string(view.view());
}

FrameFault decode(const FrameHeader& header, FrameLimits limits) {
  FrameHeader seen;
  return decode_header(encode_header(header), limits, seen);
}

}  // namespace

TEST(the_checksum_is_castagnoli_s_by_table_and_by_instruction) {
  CHECK_EQ(crc32c(0, "123456789", 9), 0xE3069283U);
  std::mt19937_64 random(3);
  std::vector<unsigned char> bytes(10'000);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  for (std::size_t length = 0; length < bytes.size(); length += 37)
    CHECK_EQ(crc32c(9, bytes.data(), length), crc32c_by_table(9, bytes.data(), length));
}

TEST(a_header_comes_back_as_it_was) {
  const FrameHeader header{.kind = FrameKind::Mark, .detail = 2, .sequence = 1234567890123, .value = -42};
  FrameHeader seen;
  CHECK(decode_header(encode_header(header), {.sequence = header.sequence}, seen) == FrameFault::None);
  CHECK_EQ(seen.sequence, header.sequence);
  CHECK_EQ(seen.value, header.value);
  CHECK_EQ(int{seen.detail}, 2);
}

TEST(headers_are_refused_for_their_reason) {
  const FrameLimits limits{.max_frame_bytes = 4096, .sequence = 7, .record_bytes = 16};
  const FrameHeader good{.kind = FrameKind::Records, .sequence = 7, .records = 3, .record_bytes = 16, .heap_bytes = 100};
  CHECK(decode(good, limits) == FrameFault::None);
  const auto changed = [&](auto change) {
    FrameHeader header = good;
    change(header);
    return decode(header, limits);
  };
  CHECK(changed([](auto& h) { h.sequence = 8; }) == FrameFault::Sequence);
  CHECK(changed([](auto& h) { h.record_bytes = 24; }) == FrameFault::RecordSize);
  CHECK(changed([](auto& h) { h.records = 0; }) == FrameFault::Field);
  CHECK(changed([](auto& h) { h.records = 0xFFFFFFFF; }) == FrameFault::Length);
  CHECK(changed([](auto& h) { h.heap_bytes = 0xFFFFFFFF; }) == FrameFault::Length);
  CHECK(changed([](auto& h) { h.heap_bytes = 4096 - 40 - 48 + 1; }) == FrameFault::Length);
  CHECK(changed([](auto& h) { h.heap_bytes = 4096 - 40 - 48; }) == FrameFault::None);
  CHECK(changed([](auto& h) { h.value = 1; }) == FrameFault::Field);
  CHECK(changed([](auto& h) { h.detail = 1; }) == FrameFault::Field);
  CHECK(changed([](auto& h) { h.checksum = 1; }) == FrameFault::Field);
  CHECK(changed([](auto& h) { h.kind = static_cast<FrameKind>(0); }) == FrameFault::Kind);
  CHECK(changed([](auto& h) { h.kind = static_cast<FrameKind>(8); }) == FrameFault::Kind);
  CHECK(changed([](auto& h) { h.kind = FrameKind::Goodbye; }) == FrameFault::Field);
  const FrameHeader text{.kind = FrameKind::Text, .sequence = 7, .heap_bytes = 100, .value = 300};
  CHECK(decode(text, limits) == FrameFault::None);
  const auto other_text = [&](auto change) {
    FrameHeader header = text;
    change(header);
    return decode(header, limits);
  };
  CHECK(other_text([](auto& h) { h.heap_bytes = 0; }) == FrameFault::Field);
  CHECK(other_text([](auto& h) { h.value = 100; }) == FrameFault::Field);
  CHECK(other_text([](auto& h) { h.records = 1; }) == FrameFault::Field);
  CHECK(other_text([](auto& h) { h.value = static_cast<std::int64_t>(kMostText) + 1; }) == FrameFault::Length);
  CHECK(other_text([](auto& h) { h.heap_bytes = 4096, h.value = 5000; }) == FrameFault::Length);
  CHECK(decode({.kind = FrameKind::Credit, .sequence = 7, .value = 0}, limits) == FrameFault::Field);
  CHECK(decode({.kind = FrameKind::Credit, .sequence = 7, .value = -1}, limits) == FrameFault::Field);
  CHECK(decode({.kind = FrameKind::Mark, .detail = static_cast<std::uint8_t>(MarkKind::Probe), .sequence = 7}, limits) ==
        FrameFault::Field);
  CHECK(decode({.kind = FrameKind::Heartbeat, .checksummed = true, .sequence = 7, .checksum = 1}, limits) == FrameFault::Checksum);

  HeaderBytes bytes = encode_header(good);
  FrameHeader seen;
  bytes[0] = std::byte{'X'};
  CHECK(decode_header(bytes, limits, seen) == FrameFault::Magic);
  bytes = encode_header(good);
  bytes[4] = std::byte{2};
  CHECK(decode_header(bytes, limits, seen) == FrameFault::Version);
  bytes = encode_header(good);
  bytes[6] = std::byte{4};
  CHECK(decode_header(bytes, limits, seen) == FrameFault::Field);
}

TEST(records_with_their_text_come_back_and_shared_text_goes_once) {
  const std::string line = "a line of some length with several words in it";
  const std::string word = "extraordinarily";
  const StringView line_view = view_of(line);
  Records records;
  for (int i = 0; i < 5; ++i) records.add(view_of(word), i, &line_view);
  records.add(view_of(std::string("short")), 5, nullptr, 77);

  FrameBody body(records.schema, 64 << 10, 1 << 20);
  FrameBody::Append outcome;
  CHECK_EQ(body.append(records.at(0), records.count(), outcome), 6U);
  CHECK(outcome == FrameBody::Append::Taken);
  CHECK_EQ(body.heap().size(), line.size() + word.size());

  Wire wire(body);
  CHECK_EQ(checksum_of(wire.header, wire.records, wire.heap), wire.header.checksum);
  std::size_t bad = 0;
  CHECK(link_views(*records.schema, wire.records.data(), 6, wire.heap, bad) == FrameFault::None);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::byte* record = wire.records.data() + i * records.schema->record_size();
    CHECK_EQ(text_at(*records.schema, record, "word"), i < 5 ? word : "short");
    CHECK_EQ(text_at(*records.schema, record, "line"), i < 5 ? line : "");
    CHECK_EQ(records.schema->is_valid(record, *records.schema->find("line")), i < 5);
  }
  // Whatever lay under the nulls didn't leave, or isn't looked at.
  const std::byte* last = wire.records.data() + 5 * records.schema->record_size();
  CHECK_EQ(std::to_integer<int>(last[records.schema->find("flag")->offset]), 0);
}

TEST(memory_used_again_between_two_calls_is_not_taken_for_the_same_text) {
  std::string text = "the first text here";
  Records first, second;
  first.add(view_of(text), 1, nullptr);
  FrameBody body(first.schema, 64 << 10, 1 << 20);
  FrameBody::Append outcome;
  (void)body.append(first.at(0), 1, outcome);
  text = "THE SECOND ONE HERE";  // same length, same place
  second.add(view_of(text), 2, nullptr);
  (void)body.append(second.at(0), 1, outcome);
  Wire wire(body);
  std::size_t bad = 0;
  CHECK(link_views(*first.schema, wire.records.data(), 2, wire.heap, bad) == FrameFault::None);
  CHECK_EQ(text_at(*first.schema, wire.records.data(), "word"), "the first text here");
  CHECK_EQ(text_at(*first.schema, wire.records.data() + first.schema->record_size(), "word"), "THE SECOND ONE HERE");
}

TEST(bytes_that_belong_to_no_value_stay_here) {
  std::vector<Field> fields = {{.name = "small", .type = Type::Int8, .format = "c"},
                               {.name = "number", .type = Type::Int64, .format = "l"},
                               {.name = "some", .type = Type::Int32, .nullable = true, .format = "i"},
                               {.name = "none", .type = Type::Int64, .nullable = true, .format = "l"},
                               {.name = "last", .type = Type::Bool, .format = "b"}};
  for (const bool with_text : {false, true}) {
    if (with_text) fields.push_back({.name = "text", .type = Type::String, .nullable = true, .format = "u"});
    const auto schema = std::make_shared<const Schema>(fields);
    const auto sent = [&](unsigned char unwritten) {
      std::vector<unsigned char> records(3 * schema->record_size(), unwritten);
      for (std::size_t at = 0; at < records.size(); at += schema->record_size()) {
        for (const char* name : {"small", "number", "some", "last"}) {
          const Field& field = *schema->find(name);
          std::memset(records.data() + at + field.offset, 1, size_of(field.type));
        }
        unsigned char& validity = records[at + schema->validity_offset()];
        validity = static_cast<unsigned char>((validity & 0xF8) | 1);  // "some" has a value
      }
      FrameBody body(schema, 64 << 10, 1 << 20);
      FrameBody::Append outcome;
      CHECK_EQ(body.append(reinterpret_cast<const std::byte*>(records.data()), 3, outcome), 3U);
      CHECK(body.heap().empty());
      return std::vector<std::byte>(body.records().begin(), body.records().end());
    };
    const std::vector<std::byte> records = sent(0);
    CHECK(sent(0x55) == records && sent(0xAA) == records && sent(0xFF) == records);
    CHECK_EQ(std::to_integer<int>(records[schema->find("number")->offset + 7]), 1);
    CHECK_EQ(std::to_integer<int>(records[schema->find("some")->offset + 3]), 1);
  }
}

TEST(a_body_is_full_at_its_target_and_takes_one_large_record_up_to_the_maximum) {
  const std::string large(5000, 'x'), huge(20000, 'y');
  Records records;
  records.add(view_of(large), 1, nullptr);
  records.add(view_of(large), 2, nullptr);
  records.add(view_of(huge), 3, nullptr);
  FrameBody body(records.schema, 4096, 16384);
  FrameBody::Append outcome;
  CHECK_EQ(body.append(records.at(0), 3, outcome), 1U);
  CHECK(outcome == FrameBody::Append::Full);
  body.clear();
  CHECK_EQ(body.append(records.at(1), 2, outcome), 1U);
  body.clear();
  CHECK_EQ(body.append(records.at(2), 1, outcome), 0U);
  CHECK(outcome == FrameBody::Append::TooLarge);

  const auto plain =
      std::make_shared<const Schema>(std::vector<Field>{{.name = "v", .type = Type::Int64, .nullable = false, .format = "l"}});
  const std::vector<std::byte> many(8 * 1000);
  FrameBody numbers(plain, 1024, 4096);
  CHECK_EQ(numbers.append(many.data(), 1000, outcome), (1024 - kFrameHeaderBytes) / 8);
  CHECK(outcome == FrameBody::Append::Full);
  CHECK_EQ(numbers.append(many.data(), 1000, outcome), 0U);
}

TEST(views_that_do_not_fit_the_heap_or_are_not_canonical_are_refused) {
  const std::string word = "extraordinarily";
  Records records;
  records.add(view_of(std::string("ok")), 0, nullptr);
  records.add(view_of(word), 1, nullptr);
  FrameBody body(records.schema, 64 << 10, 1 << 20);
  FrameBody::Append outcome;
  (void)body.append(records.at(0), 2, outcome);
  const std::size_t stride = records.schema->record_size();
  const auto broken = [&](std::size_t record, std::size_t at, std::uint64_t value, std::size_t bytes, std::size_t expected_record) {
    Wire wire(body);
    std::memcpy(wire.records.data() + record * stride + at, &value, bytes);
    std::size_t bad = 99;
    const FrameFault fault = link_views(*records.schema, wire.records.data(), 2, wire.heap, bad);
    return fault == FrameFault::View && bad == expected_record;
  };
  CHECK(broken(1, 8, 1, 8, 1));           // one byte over the end
  CHECK(broken(1, 8, UINT64_MAX, 8, 1));  // the sum would overflow
  CHECK(broken(1, 8, UINT64_MAX - 14, 8, 1));
  CHECK(broken(1, 0, 16, 4, 1));  // longer than the heap
  CHECK(broken(1, 0, UINT32_MAX, 4, 1));
  CHECK(broken(1, 4, 0x41414141, 4, 1));  // another prefix than the text's
  CHECK(broken(1, 0, 3, 4, 1));           // inline, with bytes behind its end
  CHECK(broken(0, 8, 1, 8, 0));
  CHECK(broken(1, records.schema->find("flag")->offset, 2, 1, 1));  // neither false nor true
}

TEST(fingerprints_differ_by_name_type_nullability_format_and_order) {
  const auto of = [](std::vector<Field> fields) { return fingerprint(Schema(std::move(fields))); };
  const Field a{.name = "a", .type = Type::Int64, .nullable = false, .format = "l"};
  const Field b{.name = "b", .type = Type::Int64, .nullable = false, .format = "l"};
  Field nullable = a, other_type = a, other_format = a;
  nullable.nullable = true;
  other_type.type = Type::Timestamp;
  other_format.format = "tsu:";
  CHECK_EQ(of({a, b}), of({a, b}));
  CHECK(of({a, b}) != of({b, a}));
  CHECK(of({a}) != of({b}));
  CHECK(of({a}) != of({nullable}));
  CHECK(of({a}) != of({other_type}));
  CHECK(of({a}) != of({other_format}));
}

long given(const char* variable, long otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtol(text, nullptr, 10) : otherwise;
}

// 10^5 mutants of valid frames, or REL_FUZZ_FRAMES, through everything that a receiver does with one; AddressSanitizer is the judge. The
// checksum is left out in half of them, since it would catch nearly all before the deeper checks are reached.
TEST(no_mutant_of_a_frame_reads_or_writes_out_of_bounds) {
  const long mutants = given("REL_FUZZ_FRAMES", 100'000);
  std::mt19937_64 random(static_cast<std::uint64_t>(given("REL_FUZZ_SEED", 11)));
  std::vector<std::string> texts;
  for (int i = 0; i < 40; ++i) texts.emplace_back(static_cast<std::size_t>(random() % 60), static_cast<char>('a' + i % 26));
  Records records;
  for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
    const StringView line = view_of(texts[i + 1]);
    records.add(view_of(texts[i]), static_cast<std::int64_t>(i), i % 3 == 0 ? nullptr : &line, static_cast<int>(i % 3));
  }
  FrameBody body(records.schema, 64 << 10, 1 << 20);
  FrameBody::Append outcome;
  (void)body.append(records.at(0), records.count(), outcome);
  const FrameLimits limits{
      .max_frame_bytes = 1 << 16, .sequence = 5, .record_bytes = static_cast<std::uint32_t>(records.schema->record_size())};
  std::size_t accepted = 0, refused = 0;
  for (long round = 0; round < mutants; ++round) {
    Wire wire(body);
    HeaderBytes header_bytes = encode_header(wire.header);
    const bool checked = random() % 2 == 0;
    for (auto changes = 1 + random() % 4; changes > 0; --changes) {
      const auto value = static_cast<unsigned char>(random() % 3 == 0 ? 0xFF : random());
      if (random() % 4 == 0)
        header_bytes[random() % header_bytes.size()] = std::byte{value};
      else
        wire.records[random() % wire.records.size()] = std::byte{value};
    }
    FrameHeader header;
    if (decode_header(header_bytes, limits, header) != FrameFault::None || header.kind != FrameKind::Records) {
      ++refused;
      continue;
    }
    CHECK(header.frame_bytes() <= limits.max_frame_bytes);
    // What the peer would have to send next: exactly as much as the header says, in memory of its own so that a byte too far is seen.
    std::vector<std::byte> got(wire.records);
    got.resize(std::size_t{header.records} * header.record_bytes);
    got.shrink_to_fit();
    std::vector<char> heap(wire.heap);
    heap.resize(header.heap_bytes);
    heap.shrink_to_fit();
    std::size_t bad = 0;
    FrameFault fault = FrameFault::None;
    if (checked && header.checksummed && checksum_of(header, got, heap) != header.checksum) fault = FrameFault::Checksum;
    if (fault == FrameFault::None) fault = link_views(*records.schema, got.data(), header.records, heap, bad);
    if (fault != FrameFault::None) {
      ++refused;
      continue;
    }
    ++accepted;
    std::size_t sum = 0;  // every accepted view can be read to its end
    for (std::size_t i = 0; i < header.records; ++i) {
      for (const char* field : {"word", "line"}) {
        for (const char c : text_at(*records.schema, got.data() + i * header.record_bytes, field)) sum += static_cast<unsigned char>(c);
      }
    }
    CHECK(sum < SIZE_MAX);
  }
  std::printf("%ld mutants: %zu decoded, %zu refused\n", mutants, accepted, refused);
  CHECK(accepted > static_cast<std::size_t>(mutants) / 100);
  CHECK(refused > static_cast<std::size_t>(mutants) / 10);
}

REL_TEST_MAIN
