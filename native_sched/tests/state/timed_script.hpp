// Scripts for operators with times: rows and watermarks drawn at random, and a context that writes down what comes out.
#pragma once

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "fake_context.hpp"
#include "rayelastic/record/hash.hpp"

namespace rayelastic::check {

inline Field field(std::string name, Type type, bool nullable = false) { return {std::move(name), type, nullable, "", 0, -1}; }
inline std::shared_ptr<const Schema> schema_of(std::vector<Field> fields) { return std::make_shared<Schema>(std::move(fields)); }

inline const auto kRows = schema_of({field("key", Type::String), field("at", Type::Int64), field("x", Type::Float64),
                                     field("note", Type::String), field("even", Type::Bool, true)});

inline unsigned char unwritten = 0;  // what bytes of rows have that belong to no value

struct Row {
  StringView key;
  std::int64_t at = 0;
  double x = 0;
  StringView note;
  std::uint8_t even = unwritten;
  std::uint8_t validity = unwritten & 0xFE;
  std::array<std::uint8_t, 6> padding = {unwritten, unwritten, unwritten, unwritten, unwritten, unwritten};
};
static_assert(sizeof(Row) == 56);

inline StringView view(const std::string& text) { return {text.data(), static_cast<std::uint32_t>(text.size())}; }

inline std::string shown(const Schema& schema, const std::byte* record) {
  std::string line;
  for (const Field& each : schema.fields()) {
    const std::byte* place = record + each.offset;
    if (!schema.is_valid(record, each)) {
      line += "null ";
    } else if (each.type == Type::Int64) {
      std::int64_t value;
      std::memcpy(&value, place, sizeof value);
      line += std::to_string(value) + " ";
    } else if (each.type == Type::Float64) {
      std::uint64_t bits;  // exactly
      std::memcpy(&bits, place, sizeof bits);
      line += std::to_string(bits) + " ";
    } else if (each.type == Type::Bool) {
      line += *place != std::byte{0} ? "true " : "false ";
    } else {
      StringView text;
      std::memcpy(static_cast<void*>(&text), place, sizeof text);
      line += std::string(text.view()) + " ";
    }
  }
  return line;
}

class TimedContext : public FakeContext {
 public:
  TimedContext(const std::shared_ptr<Operator>& operator_spec, std::int64_t now, std::int32_t from, std::vector<std::string>& log)
      : FakeContext(operator_spec, 3), now_(now), from_(from), log_(log) {}
  [[nodiscard]] std::int64_t watermark() const override { return now_; }
  [[nodiscard]] std::int32_t port() const override { return from_; }
  bool emit(std::int32_t output, const void* emitted, std::int64_t n) override {
    const Schema& schema = *op.outputs()[static_cast<std::size_t>(output)];
    for (std::int64_t i = 0; i < n; ++i) {
      const auto* each = static_cast<const std::byte*>(emitted) + static_cast<std::size_t>(i) * schema.record_size();
      log_.push_back((output == 0 ? "" : "late ") + shown(schema, each));
    }
    return true;
  }
  void mark(Mark mark) override {
    show();
    marks.push_back(mark.value);
    log_.push_back("mark " + std::to_string(mark.value));
  }
  void show() {
    for (; shown_ < size(); ++shown_) log_.push_back(shown(*op.outputs().front(), record(shown_)));
  }
  std::vector<std::int64_t> marks;

 private:
  std::int64_t now_;
  std::int32_t from_;
  std::vector<std::string>& log_;
  std::size_t shown_ = 0;
};

// One thing that comes to an operator: rows of a port, or a watermark.
struct Step {
  std::int32_t port = 0;
  std::vector<Row> rows = {};
  std::int64_t watermark = kNoWatermark;  // as of now
};

struct Script {
  std::vector<std::string> texts = {"", "a", "bb", "a key of more than twelve bytes", "another key, long as well", "k5", "k6", "k7"};
  std::vector<Step> steps = {};

  explicit Script(std::uint64_t seed, std::size_t count, std::int32_t ports) {
    std::mt19937_64 random(seed);
    std::int64_t time = 0;
    std::int64_t watermark = kNoWatermark;
    for (std::size_t i = 0; i < count; ++i) {
      Step step;
      if (random() % 3 == 0) {
        watermark = std::max(watermark, time - static_cast<std::int64_t>(random() % 12));
      } else {
        step.port = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(ports));
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
          time += static_cast<std::int64_t>(random() % 3);
          const std::int64_t at = time - static_cast<std::int64_t>(random() % 16);  // some are late
          step.rows.push_back(
              {view(texts[random() % texts.size()]), at, static_cast<double>(random() % 1000) / 7, view(texts[random() % texts.size()])});
          if (at % 3 != 0) {  // else null
            step.rows.back().even = at % 2 == 0 ? 1 : 0;
            step.rows.back().validity |= 1;
          }
        }
      }
      step.watermark = watermark;
      steps.push_back(std::move(step));
    }
  }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
};

}  // namespace rayelastic::check
