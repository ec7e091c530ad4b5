// A thread of a single operator: that of a source, or of a port with the dedicated model (P04, P08). Knows no other operator.
#pragma once

#include <thread>
#include <utility>

#include "engine/context/operator_context.hpp"
#include "engine/context/port.hpp"
#include "engine/engine.hpp"
#include "engine/worker.hpp"

namespace rayelastic {

class OperatorThread {
 public:
  OperatorThread(Engine& engine, OperatorContext& source) {
    start(engine, [&source] { source.run_source(); });
  }
  // Lives as long as the engine, even when the port turns to another model: whatever is listed with it is still served.
  OperatorThread(Engine& engine, Port& port) : port_(&port) {
    start(engine, [&engine, &port] {
      while (!engine.is_stopping()) {
        port.wait_listed();
        if (!engine.is_stopping()) port.visit();
      }
    });
  }
  OperatorThread(const OperatorThread&) = delete;
  OperatorThread& operator=(const OperatorThread&) = delete;

  void wake() noexcept {
    if (port_ != nullptr) port_->wake();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] EngineThread& own() noexcept { return own_; }
  [[nodiscard]] const EngineThread& own() const noexcept { return own_; }

 private:
  template <class Body>
  void start(Engine& engine, Body body) {
    thread_ = std::thread([this, &engine, body = std::move(body)] { run_engine_thread(engine, own_, body); });
  }

  EngineThread own_;
  Port* port_ = nullptr;
  std::thread thread_;
};

}  // namespace rayelastic
