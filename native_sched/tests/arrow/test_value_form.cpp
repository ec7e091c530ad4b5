// Values of forms in bytes: to Arrow and back the same bytes, whatever the form; damaged ones are refused, and nothing outside of them is read.
#include <cstring>
#include <random>

#include "check.hpp"
#include "rayelastic/arrow/arrow_reader.hpp"
#include "rayelastic/arrow/arrow_writer.hpp"
#include "rayelastic/record/string_view.hpp"
#include "rayelastic/record/value_form.hpp"

using namespace rayelastic;

namespace {

using Kind = ValueForm::Kind;
using Random = std::mt19937;

const std::vector<std::string> kForms = {
    "+l<l>",
    "+t<u?>",
    "+l<b?>",
    "+m<u;g?>",
    "+m<w:16;+l<s>>",
    "+s<a.Point;x=g;tag=u?>",
    "+s<;a=l?;b=z;c=b;d=+e<m.Side;u;buy;sell%20now>?;e=d:12,2>",
    "+l<+s<;a=+l<+m<i;u?>?>;b=+t<tsu:Europe/Berlin>?>?>",
    "+l<+l<+l<u>?>?>",
    "+l<+e<m.Level;l;-1;9>>",
    "+j",
    "+o",
};

void fill(const ValueForm& form, char* at, Random& random) {
  if (form.kind == Kind::Enum) {
    const auto number = static_cast<std::int32_t>(random() % form.members.size());
    std::memcpy(at, &number, sizeof number);
  } else if (form.type == Type::Bool) {
    *at = static_cast<char>(random() % 2);
  } else {
    for (std::size_t i = 0; i < form.width(); ++i) at[i] = static_cast<char>(random());
  }
}

void append(const ValueForm& form, std::string& out, Random& random);

void give(const ValueForm& form, ValueWriter& writer, std::string& out, Random& random) {
  if (form.nullable && random() % 3 == 0) {
    writer.absent();
  } else if (form.is_variable()) {
    writer.begin();
    append(form, out, random);
    writer.end();
  } else {
    fill(form, writer.fixed(), random);
  }
}

void sequence(const ValueForm& item, std::size_t count, std::string& out, Random& random) {
  ValueWriter writer(out, item, count);
  for (std::size_t i = 0; i < count; ++i) give(item, writer, out, random);
}

void append(const ValueForm& form, std::string& out, Random& random) {
  const std::size_t count = random() % 12;
  if (form.kind == Kind::List) {
    sequence(form.children[0], count, out, random);
  } else if (form.kind == Kind::Map) {
    MapWriter map(out);
    sequence(form.children[0], count, out, random);
    map.keys_written();
    sequence(form.children[1], count, out, random);
  } else if (form.kind == Kind::Struct) {
    ValueWriter writer(out, form);
    for (const ValueForm& field : form.children) give(field, writer, out, random);
  } else {
    out.append(count * 3, static_cast<char>('a' + random() % 26));
  }
}

std::shared_ptr<const Schema> schema_of(const std::string& form, bool nullable) {
  return std::make_shared<Schema>(std::vector<Field>{{"v", type_of_format(form, "v"), nullable, form, 0, -1}});
}

// Records of one field, whose bytes are those of `values`; empty pointers are nulls.
std::vector<std::byte> records_of(const Schema& schema, const std::vector<std::unique_ptr<std::string>>& values) {
  std::vector<std::byte> records(values.size() * schema.record_size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* const record = records.data() + i * schema.record_size();
    if (values[i] == nullptr) continue;
    const StringView view(values[i]->data(), static_cast<std::uint32_t>(values[i]->size()));
    std::memcpy(record, static_cast<const void*>(&view), sizeof view);
    if (schema.fields()[0].nullable) record[schema.validity_offset()] = std::byte{1};
  }
  return records;
}

void there_and_back(const std::string& form, Random& random) {
  const bool nullable = random() % 2 == 0;
  const auto schema = schema_of(form, nullable);
  const ValueForm& parsed = *schema->fields()[0].form;
  std::vector<std::unique_ptr<std::string>> values(random() % 40);
  for (auto& value : values) {
    if (nullable && random() % 4 == 0) continue;
    value = std::make_unique<std::string>();
    append(parsed, *value, random);
  }
  const std::vector<std::byte> records = records_of(*schema, values);
  ArrowWriter writer(schema);
  CHECK_EQ(writer.append(records.data(), values.size()), values.size());
  ArrowArray array;
  ArrowSchema type;
  writer.take(&array);
  export_schema(*schema, &type);
  const std::size_t skipped = values.empty() ? 0 : random() % values.size();
  array.offset += static_cast<std::int64_t>(skipped);
  array.length -= static_cast<std::int64_t>(skipped);
  {
    const ArrowBatch batch(schema, &array, type);
    CHECK_EQ(batch.rows(), values.size() - skipped);
    std::vector<std::byte> back(batch.rows() * schema->record_size());
    batch.read(0, batch.rows(), back.data());
    for (std::size_t i = 0; i < batch.rows(); ++i) {
      const std::byte* const record = back.data() + i * schema->record_size();
      const auto& expected = values[i + skipped];
      CHECK_EQ(schema->is_valid(record, schema->fields()[0]), expected != nullptr);
      StringView view;
      std::memcpy(static_cast<void*>(&view), record, sizeof view);
      CHECK(expected == nullptr || view.view() == *expected);
    }
  }
  type.release(&type);
}

// Bytes with one changed, or cut off: what comes of them is an error or another value, never what lies beside them.
void damaged(const std::string& form, Random& random) {
  const auto schema = schema_of(form, false);
  std::vector<std::unique_ptr<std::string>> values;
  std::string whole;
  append(*schema->fields()[0].form, whole, random);
  if (whole.empty()) return;
  if (random() % 2 == 0) {
    whole.resize(random() % whole.size());
  } else {
    whole[random() % whole.size()] = static_cast<char>(random());
  }
  whole.shrink_to_fit();
  values.push_back(std::make_unique<std::string>(whole));
  const std::vector<std::byte> records = records_of(*schema, values);
  ArrowWriter writer(schema);
  CHECK_EQ(writer.append(records.data(), 1), 1U);
  ArrowArray array;
  try {
    writer.take(&array);
  } catch (const ArrowError&) {
    return;
  }
  array.release(&array);
}

}  // namespace

TEST(values_of_every_form_go_to_arrow_and_back) {
  Random random(7);
  for (const std::string& form : kForms) {
    for (int i = 0; i < 200; ++i) there_and_back(form, random);
  }
}

TEST(damaged_values_are_refused) {
  Random random(11);
  for (const std::string& form : kForms) {
    for (int i = 0; i < 500; ++i) damaged(form, random);
  }
}

TEST(forms_are_parsed) {
  const ValueForm form = parse_form("+s<;d=+e<m.Side;u;buy;sell%20now>?;e=d:12,2>");
  CHECK_EQ(form.children.size(), 2U);
  CHECK(form.children[0].nullable && form.children[0].name == "d");
  CHECK_EQ(form.children[0].members[1], std::string("sell now"));
  for (const char* wrong : {"+", "+l<", "+l<l", "+q", "+s<>", "+s<;a>", "+m<l>", "+l<nothing>", "+l<l>x"})
    CHECK_THROWS(parse_form(wrong), std::invalid_argument);
}

REL_TEST_MAIN
