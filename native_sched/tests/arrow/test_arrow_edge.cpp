#include <cstring>
#include <random>

#include "check.hpp"
#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/arrow/arrow_writer.hpp"
#include "rayelastic/record/string_view.hpp"

using namespace rayelastic;

namespace {

std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }

Field field(const std::string& name, const std::string& format, bool nullable = false) {
  return {name, type_of_format(format, name), nullable, format, 0, -1};
}

// A batch of one column, made by hand; what it points to belongs to the test.
struct OneColumn {
  OneColumn(const char* format, std::vector<const void*> given, std::int64_t length, std::int64_t offset = 0, std::int64_t nulls = -1)
      : buffers(std::move(given)) {
    column.length = length;
    column.offset = offset;
    column.null_count = nulls;
    column.n_buffers = static_cast<std::int64_t>(buffers.size());
    column.buffers = buffers.data();
    array.length = length;
    array.n_buffers = 1;
    array.buffers = &nothing;
    array.n_children = 1;
    array.children = columns;
    array.private_data = this;
    array.release = [](ArrowArray* self) {
      ++static_cast<OneColumn*>(self->private_data)->released;
      self->release = nullptr;
    };
    type.format = format;
    type.name = "c";
    schema.format = "+s";
    schema.n_children = 1;
    schema.children = types;
  }
  OneColumn(const OneColumn&) = delete;
  OneColumn& operator=(const OneColumn&) = delete;

  int released = 0;
  const void* nothing = nullptr;
  std::vector<const void*> buffers;
  ArrowArray column = {};
  ArrowArray* columns[1] = {&column};
  ArrowArray array = {};
  ArrowSchema type = {};
  ArrowSchema* types[1] = {&type};
  ArrowSchema schema = {};
};

std::string refusal(const std::shared_ptr<const Schema>& schema, OneColumn& given) {
  try {
    const ArrowBatch batch(schema, &given.array, given.schema);
  } catch (const ArrowError& error) {
    CHECK_EQ(given.released, 1);
    return error.what();
  }
  return "";
}

std::vector<std::string> texts_of(const ArrowBatch& batch) {
  std::vector<StringView> records(batch.rows());
  batch.read(0, batch.rows(), reinterpret_cast<std::byte*>(records.data()));
  std::vector<std::string> texts;
  for (const StringView& text : records) texts.emplace_back(text.view());
  return texts;
}

const std::vector<std::string> kFormats = {"b",   "c",   "s",    "i",       "l",   "C",   "S",   "I",   "L",   "e",
                                           "f",   "g",   "tdD",  "tdm",     "tts", "ttm", "ttu", "ttn", "tDs", "tDm",
                                           "tDu", "tDn", "tsu:", "tsn:UTC", "u",   "U",   "z",   "Z"};

}  // namespace

TEST(all_types_survive_the_round_trip_with_and_without_nulls) {
  std::vector<Field> fields;
  for (const std::string& format : kFormats) {
    fields.push_back(field("f " + format, format));
    fields.push_back(field("n " + format, format, true));
  }
  const auto schema = schema_of(fields);
  const std::size_t stride = schema->record_size();
  constexpr std::size_t kRows = 1000;
  std::vector<std::byte> records(kRows * stride);
  std::vector<std::string> heap;
  heap.reserve(kRows * fields.size());
  std::mt19937_64 random(31);
  for (std::size_t row = 0; row < kRows; ++row) {
    std::byte* record = records.data() + row * stride;
    for (const Field& f : schema->fields()) {
      if (f.nullable && random() % 3 == 0) continue;  // null, all zero
      if (f.nullable)
        record[schema->validity_offset() + static_cast<std::size_t>(f.validity) / 8] |= static_cast<std::byte>(1 << (f.validity % 8));
      if (f.type == Type::String || f.type == Type::Binary) {
        heap.emplace_back(random() % 30, static_cast<char>('a' + random() % 26));
        const StringView text(heap.back().data(), static_cast<std::uint32_t>(heap.back().size()));
        std::memcpy(record + f.offset, &text, sizeof text);
      } else if (f.type == Type::Bool) {
        record[f.offset] = static_cast<std::byte>(random() % 2);
      } else {
        const std::uint64_t value = random();
        std::memcpy(record + f.offset, &value, size_of(f.type));
      }
    }
  }
  ArrowWriter writer(schema);
  for (std::size_t done = 0; done < kRows;) {  // in runs of all sizes
    const std::size_t run = std::min<std::size_t>(1 + random() % 300, kRows - done);
    CHECK_EQ(writer.append(records.data() + done * stride, run), run);
    done += run;
  }
  ArrowArray array;
  ArrowSchema arrow;
  writer.take(&array);
  CHECK_EQ(writer.rows(), 0U);
  export_schema(*schema, &arrow);
  CHECK_EQ(array.length, static_cast<std::int64_t>(kRows));
  CHECK_EQ(arrow.children[1]->flags, ARROW_FLAG_NULLABLE);
  const ArrowBatch batch(schema, &array, arrow);
  CHECK(array.release == nullptr && arrow.release != nullptr);
  arrow.release(&arrow);
  std::vector<std::byte> back(kRows * stride, std::byte{0xee});
  for (std::size_t done = 0; done < kRows;) {
    const std::size_t run = std::min<std::size_t>(1 + random() % 300, kRows - done);
    batch.read(done, run, back.data() + done * stride);
    done += run;
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    for (const Field& f : schema->fields()) {
      const std::byte* expected = records.data() + row * stride;
      const std::byte* actual = back.data() + row * stride;
      CHECK_EQ(schema->is_valid(actual, f), schema->is_valid(expected, f));
      if (f.type == Type::String || f.type == Type::Binary) {
        CHECK(*reinterpret_cast<const StringView*>(actual + f.offset) == *reinterpret_cast<const StringView*>(expected + f.offset));
        std::memset(const_cast<std::byte*>(actual) + f.offset, 0, 16);
      } else {
        CHECK(std::memcmp(actual + f.offset, expected + f.offset, size_of(f.type)) == 0);
        std::memset(const_cast<std::byte*>(actual) + f.offset, 0, size_of(f.type));
      }
    }
    for (std::size_t i = 0; i < schema->validity_offset(); ++i) CHECK(back[row * stride + i] == std::byte{0});  // paddings too
  }
}

TEST(columns_of_a_batch_may_be_taken_apart) {
  const auto schema = schema_of({field("n", "l"), field("s", "u")});
  ArrowWriter writer(schema);
  ArrowArray array;
  writer.take(&array);  // without rows
  CHECK_EQ(array.children[1]->n_buffers, 3);
  CHECK(array.children[1]->buffers[1] != nullptr);
  ArrowArray kept = *array.children[1];  // moved out, as a consumer may
  array.children[1]->release = nullptr;
  array.release(&array);
  CHECK_EQ(static_cast<const std::int32_t*>(kept.buffers[1])[0], 0);
  kept.release(&kept);
}

TEST(slices_are_read_where_they_begin) {
  const std::int32_t offsets[] = {0, 1, 3, 6, 30, 30};
  const char* bytes = "abbccca text of more than 12 b";
  const std::uint8_t validity = 0b11011;
  OneColumn given("u", {&validity, offsets, bytes}, 3, 1);  // rows 1 to 3 of the buffers
  given.array.length = 2;
  given.array.offset = 1;  // of which the batch takes rows 2 and 3
  given.column.length = 4;
  const auto schema = schema_of({field("c", "u", true)});
  {
    const ArrowBatch batch(schema, &given.array, given.schema);
    CHECK_EQ(batch.rows(), 2U);
    struct Record {
      StringView text;
      std::uint64_t valid;
    } records[2];
    batch.read(0, 2, reinterpret_cast<std::byte*>(records));
    CHECK_EQ(records[0].valid, 0U);
    CHECK_EQ(records[0].text.length, 0U);
    CHECK_EQ(records[1].valid, 1U);
    CHECK_EQ(std::string(records[1].text.view()), "a text of more than 12 b");
    CHECK(records[1].text.pointer == bytes + 6);  // not a copy
    const ChunkRef kept = ChunkRef::share(batch.chunk());
    CHECK_EQ(given.released, 0);
  }
  CHECK_EQ(given.released, 1);
}

TEST(all_text_layouts_fill_a_text_field) {
  const std::vector<std::string> expected = {"short", "", "a text of more than twelve bytes", "twelve bytes"};
  std::string heap;
  std::vector<std::int64_t> offsets = {0};
  struct View {
    std::int32_t length;
    char prefix[4];
    std::int32_t buffer;
    std::int32_t offset;
  };
  std::vector<View> views;
  for (const std::string& text : expected) {
    View view = {static_cast<std::int32_t>(text.size()), {}, 0, 0};
    std::memcpy(view.prefix, text.data(), std::min<std::size_t>(4, text.size()));
    if (text.size() > 12) {
      view.buffer = 1;
      view.offset = static_cast<std::int32_t>(heap.size());
    } else if (text.size() > 4) {
      std::memcpy(&view.buffer, text.data() + 4, text.size() - 4);
    }
    views.push_back(view);
    heap += text;
    offsets.push_back(static_cast<std::int64_t>(heap.size()));
  }
  OneColumn large("U", {nullptr, offsets.data(), heap.data()}, 4);
  CHECK(texts_of(ArrowBatch(schema_of({field("c", "u")}), &large.array, large.schema)) == expected);
  const std::int64_t sizes[2] = {0, static_cast<std::int64_t>(heap.size())};
  OneColumn view("vz", {nullptr, views.data(), nullptr, heap.data(), sizes}, 4);
  CHECK(texts_of(ArrowBatch(schema_of({field("c", "z")}), &view.array, view.schema)) == expected);
  views[2].offset += 1000;
  OneColumn outside("vu", {nullptr, views.data(), nullptr, heap.data(), sizes}, 4);
  CHECK(refusal(schema_of({field("c", "u")}), outside).find("row 2") != std::string::npos);
  std::swap(offsets[1], offsets[2]);
  offsets[1] = 40;
  OneColumn backwards("U", {nullptr, offsets.data(), heap.data()}, 4);
  CHECK(refusal(schema_of({field("c", "u")}), backwards).find("'c'") != std::string::npos);
}

TEST(a_null_where_none_may_be_is_named_with_its_row) {
  const std::vector<std::int64_t> values(100);
  std::vector<std::uint8_t> validity(13, 0xff);
  OneColumn good("l", {validity.data(), values.data()}, 100);
  CHECK_EQ(refusal(schema_of({field("c", "l")}), good), "");
  validity[9] = 0xef;
  OneColumn bad("l", {validity.data(), values.data()}, 90, 5);
  const std::string message = refusal(schema_of({field("c", "l")}), bad);
  CHECK(message.find("'c'") != std::string::npos && message.find("row 71") != std::string::npos);
  OneColumn before("l", {validity.data(), values.data()}, 20, 77);
  CHECK_EQ(refusal(schema_of({field("c", "l")}), before), "");
}

TEST(what_a_record_cannot_hold_is_refused_by_name) {
  const std::vector<std::int64_t> values(10);
  const auto schema = schema_of({field("c", "l")});
  for (const char* format : {"i", "g", "d:38,2", "+l", "+s", "n", "tsu:", "w:16", "vu", ""}) {
    OneColumn given(format, {nullptr, values.data()}, 5);
    CHECK(refusal(schema, given).find("'c' has Arrow format '" + std::string(format)) != std::string::npos);
  }
  OneColumn dictionary("l", {nullptr, values.data()}, 5);
  ArrowSchema value_type = {};
  dictionary.type.dictionary = &value_type;
  CHECK(refusal(schema, dictionary).find("dictionary-encoded") != std::string::npos);
  OneColumn other_name("l", {nullptr, values.data()}, 5);
  other_name.type.name = "d";
  CHECK(refusal(schema, other_name).find("no column for field 'c'") != std::string::npos);
  OneColumn short_column("l", {nullptr, values.data()}, 5);
  short_column.array.length = 6;
  CHECK(refusal(schema, short_column).find("fewer values") != std::string::npos);
  OneColumn no_values("l", {nullptr, nullptr}, 5);
  CHECK(refusal(schema, no_values).find("no values") != std::string::npos);
  OneColumn no_batch("l", {nullptr, values.data()}, 5);
  no_batch.schema.format = "l";
  CHECK(refusal(schema, no_batch).find("not a record batch") != std::string::npos);
  const std::uint8_t row_validity = 0xfe;
  OneColumn null_row("l", {nullptr, values.data()}, 5);
  null_row.nothing = &row_validity;
  null_row.array.null_count = 1;
  CHECK(refusal(schema, null_row).find("null as a whole") != std::string::npos);
  OneColumn zoned("tsu:Europe/Zurich", {nullptr, values.data()}, 5);
  CHECK_EQ(refusal(schema_of({field("c", "tsu:")}), zoned), "");
  OneColumn other_unit("tsn:", {nullptr, values.data()}, 5);
  CHECK(refusal(schema_of({field("c", "tsu:")}), other_unit).find("tsn:") != std::string::npos);
}

TEST(columns_are_found_by_name) {
  const auto written = schema_of({field("a", "l"), field("b", "g"), field("c", "u")});
  ArrowWriter writer(written);
  struct Record {
    std::int64_t a = 7;
    double b = 0.5;
    StringView c = StringView("x", 1);
  } record;
  CHECK_EQ(writer.append(reinterpret_cast<const std::byte*>(&record), 1), 1U);
  ArrowArray array;
  ArrowSchema arrow;
  writer.take(&array);
  export_schema(*written, &arrow);
  const auto read = schema_of({field("c", "u"), field("a", "l")});
  const ArrowBatch batch(read, &array, arrow);
  arrow.release(&arrow);
  struct {
    StringView c;
    std::int64_t a;
  } back;
  batch.read(0, 1, reinterpret_cast<std::byte*>(&back));
  CHECK_EQ(back.a, 7);
  CHECK_EQ(std::string(back.c.view()), "x");
}

TEST(a_batch_ends_before_a_text_column_is_full) {
  const auto schema = schema_of({field("s", "z")});
  constexpr std::size_t kMost = (1 << 20) - 1;  // instead of 2 GiB - 1
  ArrowWriter writer(schema, 0, kMost);
  const std::string text(1 << 10, 't');
  const std::vector<StringView> run(64, StringView(text.data(), static_cast<std::uint32_t>(text.size())));
  std::size_t rows = 0;
  std::size_t taken = run.size();
  for (; taken == run.size(); rows += taken) taken = writer.append(reinterpret_cast<const std::byte*>(run.data()), run.size());
  CHECK_EQ(rows, 1023U);
  ArrowArray array;
  writer.take(&array);
  CHECK_EQ(static_cast<const std::int32_t*>(array.children[0]->buffers[1])[1023], 1023 << 10);
  array.release(&array);
  CHECK_EQ(writer.append(reinterpret_cast<const std::byte*>(run.data()), run.size()), run.size());
}

REL_TEST_MAIN
