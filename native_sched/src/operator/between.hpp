// Stands between a function and the engine: it counts what was flushed, and skips it when the function is called again with the same
// records.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class Between final : public rel_context {
 public:
  Between(rel_context& context, std::byte* out, std::size_t stride) : context_(context), out_(out), stride_(stride) {}

  // What the function is given as `out` from now on, how many of its next records went out already, and how many of tuples before
  // wait at the front of the engine's `out`.
  void begin(std::byte* out, std::int64_t skipped, std::int64_t waiting) {
    given_ = out, skipped_ = skipped, waiting_ = waiting, flushed_ = 0, kept_ = 0;
  }
  [[nodiscard]] std::int64_t flushed() const noexcept { return flushed_; }
  [[nodiscard]] std::int64_t kept_records() const noexcept { return kept_; }
  // Records that went out already and weren't made again: they are of a later tuple.
  [[nodiscard]] std::int64_t ahead() const noexcept { return skipped_; }
  // Moves what the function left in its `out` to the front of the engine's; returns how many are left of them.
  [[nodiscard]] std::int64_t settle(std::int64_t n) {
    const std::int64_t left_out = std::min(n, skipped_);
    skipped_ -= left_out;
    const std::byte* from = given_ + static_cast<std::size_t>(left_out) * stride_;
    if (from != out_) std::memmove(out_, from, static_cast<std::size_t>(n - left_out) * stride_);
    return n - left_out;
  }

  bool flush(std::int64_t n) override {
    flushed_ += n;
    const std::int64_t waiting = std::exchange(waiting_, 0);
    return (waiting == 0 || context_.flush(waiting)) && context_.flush(settle(n));
  }
  void finish() override { context_.finish(); }
  void* allocate(std::size_t bytes) override { return context_.allocate(bytes); }
  void attach(Chunk* chunk) override { context_.attach(chunk); }
  bool keep_text(void* field, const char* text, std::uint32_t bytes) override { return context_.keep_text(field, text, bytes); }
  void fail(std::string message) override { context_.fail(std::move(message)); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return context_.input_chunks(); }
  void mark(Mark mark) override { context_.mark(mark); }
  bool emit(std::int32_t port, const void* records, std::int64_t n) override { return context_.emit(port, records, n); }
  void count(Tally what, std::int64_t n) override { context_.count(what, n); }
  void kept(std::int64_t n) override { kept_ = n; }
  [[nodiscard]] bool stopping() const override { return context_.stopping(); }

 private:
  rel_context& context_;
  std::byte* const out_;
  const std::size_t stride_;
  std::byte* given_ = nullptr;
  std::int64_t skipped_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t flushed_ = 0;
  std::int64_t kept_ = 0;
};

}  // namespace rayelastic
