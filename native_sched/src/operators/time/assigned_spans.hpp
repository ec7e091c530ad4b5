// Stands between a window operator and the function that assigns windows: calls it with one record and gathers the spans that it emits.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rayelastic/operator/operator.hpp"
#include "rayelastic/operator/recovery.hpp"
#include "rayelastic/operators/time/window_function.hpp"
#include "record/time_field.hpp"

namespace rayelastic {

class AssignedSpans final : public rel_context {
 public:
  // `assigner`: an operator that emits any number of records of start and end for each of its input. Throws std::invalid_argument.
  explicit AssignedSpans(std::shared_ptr<Operator> assigner)
      : assigner_(std::move(assigner)),
        start_(*assigner_->outputs().front(), "start"),
        end_(*assigner_->outputs().front(), "end"),
        stride_(assigner_->outputs().front()->record_size()),
        room_(kRoom * stride_ / sizeof(std::uint64_t)) {
    if (assigner_->has_any(REL_KEYED | REL_SOURCE))
      throw std::invalid_argument("windows are assigned by a function of a tuple, without state");
  }

  // Calls it with one record. 0, or what it returned, and why has been passed on.
  [[nodiscard]] std::int64_t call(const std::byte* record, rel_context& engine) {
    engine_ = &engine;
    spans_.clear();
    has_failed_ = false;
    auto* const out = reinterpret_cast<std::byte*>(room_.data());
    std::int64_t made = assigner_->process(record, 1, out, kRoom, this);
    if (made < 0 && made != REL_STOPPED && assigner_->recovery() != nullptr && !has_failed_) {
      spans_.clear();
      made = assigner_->recovery()->go_on(*assigner_, {record, 1, out, kRoom, 0, 0, 0}, this);
    }
    if (made > 0) take(out, made);
    return std::min<std::int64_t>(made, 0);
  }
  [[nodiscard]] const std::vector<Span>& spans() const noexcept { return spans_; }

  // --- what the function asks for
  bool flush(std::int64_t n) override { return emit(0, room_.data(), n); }
  bool emit(std::int32_t /*output_port*/, const void* records, std::int64_t n) override {
    take(static_cast<const std::byte*>(records), n);
    return true;
  }
  void finish() override {}
  void* allocate(std::size_t bytes) override { return engine_->allocate(bytes); }
  void attach(Chunk* chunk) override { engine_->attach(chunk); }
  void fail(std::string message) override {
    has_failed_ = true;
    engine_->fail(std::move(message));
  }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return engine_->input_chunks(); }
  void mark(Mark) override {}
  void count(Tally what, std::int64_t n) override { engine_->count(what, n); }
  [[nodiscard]] bool stopping() const override { return engine_->stopping(); }

 private:
  static constexpr std::int64_t kRoom = 16;  // records

  void take(const std::byte* records, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i, records += stride_) spans_.push_back({start_.of(records), end_.of(records)});
  }

  const std::shared_ptr<Operator> assigner_;
  const TimeField start_;
  const TimeField end_;
  const std::size_t stride_;
  std::vector<std::uint64_t> room_;
  std::vector<Span> spans_ = {};
  rel_context* engine_ = nullptr;
  bool has_failed_ = false;
};

}  // namespace rayelastic
