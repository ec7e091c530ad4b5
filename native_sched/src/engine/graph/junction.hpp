// The meeting point of one operator's input ports: its gate, and for a conjunctive operator the stages in which records wait until all
// ports have enough (Joker section 3.1, J02, J03). Knows neither queues nor threads, and doesn't run the operator. Except for the gate,
// only the thread inside the gate accesses it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "operator/record_buffer.hpp"
#include "operator/stages.hpp"
#include "queue/gate.hpp"
#include "rayelastic/operator/operator.hpp"

namespace rayelastic {

class Port;

class Junction {
 public:
  // An input of the operator: one for each input port, then one for each input port that has feedback edges.
  struct Input {
    std::size_t port = 0;
    std::size_t stride = 0;
    bool feedback = false;
    std::size_t edges = 0;
    std::size_t finals = 0;
  };

  // stage_records: how many records of each port may wait, and the most that a firing takes; spare_bytes: see widen.
  Junction(Operator& op, std::vector<Input> inputs, std::size_t stage_records, std::size_t spare_bytes);

  [[nodiscard]] bool is_conjunctive() const noexcept { return !demands_.empty(); }
  [[nodiscard]] const Input& input(std::size_t input) const noexcept { return inputs_[input]; }
  // The records of both ports come from one operator.
  void relate(std::size_t port, std::size_t other) { relatives_[port].push_back(other); }
  // True: that was the last edge of the input.
  [[nodiscard]] bool end_edge(std::size_t input);

  // Copies what there is room for into the stage of the input.
  [[nodiscard]] std::size_t stage(std::size_t input, const Run& run);
  [[nodiscard]] bool has_room(std::size_t input) const noexcept { return is_open() || stages_[input].size() < limits_[input]; }
  // Open, the stages take all that comes: what waits in front of them is to be saved with them. Any thread; whoever opens them has to release
  // the gate, for others may wait there.
  void open(bool is_open) noexcept { open_.store(is_open, std::memory_order_relaxed); }
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_relaxed); }

  enum class Widened : std::uint8_t { No, Yes, Beyond };
  // The stage of `input` is full. Yes: it has more room now, for it is short of records at a related port, whose records may be
  // behind the very ones that wait here: an operator that gives a port less than the other would block itself (a filter on one
  // side of a diamond). Beyond: that has cost spare_bytes already.
  [[nodiscard]] Widened widen(std::size_t input);

  // How often the operator may fire in one call; 0: a port has ended and can't satisfy, the rest has to be delivered; or nothing.
  [[nodiscard]] std::optional<std::int64_t> ready() const;
  // The records of a firing, of all ports; they stay until consume().
  void begin(std::int64_t firings);
  void consume();
  [[nodiscard]] bool is_firing() const noexcept { return firings_ >= 0; }
  [[nodiscard]] std::int64_t firings() const noexcept { return firings_; }
  [[nodiscard]] Run part(std::size_t port) const noexcept { return stages_[port].front(counts_[port]); }
  [[nodiscard]] std::size_t records() const noexcept;
  [[nodiscard]] const std::vector<Chunk*>& chunks() const noexcept { return chunks_; }

  Gate<Port> gate;
  std::size_t port = 0;  // of the run or mark that is processed

 private:
  const std::vector<Demand> demands_;
  const std::size_t stage_records_;
  const std::size_t spare_bytes_;
  std::vector<Input> inputs_;
  std::vector<std::vector<std::size_t>> relatives_;  // by port
  Stages* const kept_;                               // by the operator; null: own_
  std::vector<RecordBuffer> own_;                    // stages
  std::vector<RecordBuffer>& stages_;                // by port
  std::atomic<bool> open_{false};                    // relaxed: the gate's lock orders who stages behind who opened
  std::vector<std::size_t> limits_;                  // of the stages, in records
  std::int64_t firings_ = -1;
  std::vector<std::size_t> counts_;
  std::vector<Chunk*> chunks_;
};

}  // namespace rayelastic
