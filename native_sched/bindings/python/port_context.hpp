// What is flushed goes to one output port: for what submits through a context of its own.
#pragma once

#include <string>
#include <utility>

#include "rayelastic/operator/operator.hpp"

namespace rayelastic::python {

class PortContext final : public rel_context {
 public:
  PortContext(rel_context& context, std::int32_t port, const std::byte* records) : context_(context), port_(port), records_(records) {}

  bool flush(std::int64_t n) override { return context_.emit(port_, records_, n); }
  void finish() override { context_.finish(); }
  void* allocate(std::size_t bytes) override { return context_.allocate(bytes); }
  void attach(Chunk* chunk) override { context_.attach(chunk); }
  void fail(std::string message) override { context_.fail(std::move(message)); }
  [[nodiscard]] std::span<Chunk* const> input_chunks() const override { return context_.input_chunks(); }
  void count(Tally what, std::int64_t n) override { context_.count(what, n); }
  void mark(Mark mark) override { context_.mark(mark); }
  [[nodiscard]] bool stopping() const override { return context_.stopping(); }

 private:
  rel_context& context_;
  const std::int32_t port_;
  const std::byte* const records_;
};

}  // namespace rayelastic::python
