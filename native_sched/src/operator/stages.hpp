// See include/rayelastic/operator/stages.hpp. Written and read while the operator is held and nobody brings it records.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "operator/record_buffer.hpp"
#include "rayelastic/state/keyless_state.hpp"
#include "state/keyless/buffered_records.hpp"

namespace rayelastic {

class Stages final : public KeylessState {
 public:
  Stages(const Schemas& ports, std::shared_ptr<KeylessState> own);

  [[nodiscard]] std::vector<RecordBuffer>& buffers() noexcept { return buffers_; }

  // Port by port its records, then what the operator keeps besides.
  [[nodiscard]] std::uint64_t form() const noexcept override;
  void write(StateWriter& writer) const override;
  void read(StateReader& reader, bool restored) override;
  [[nodiscard]] std::size_t bytes() const noexcept override { return own_ == nullptr ? 0 : own_->bytes(); }

 private:
  std::vector<RecordBuffer> buffers_;
  std::vector<BufferedRecords> forms_;
  std::shared_ptr<KeylessState> own_;
};

}  // namespace rayelastic
