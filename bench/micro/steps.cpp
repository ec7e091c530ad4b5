// One pipeline of operators of 1 FLOP that runs until so many tuples have arrived: what instructions.py counts the steps of.
//
//   bench_steps [operators=100] [run=64] [dynamic=0] [threads=1] [tuples=100000]
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "load.hpp"
#include "measure.hpp"

using namespace rayelastic;
using namespace rayelastic::bench;

int main(int argc, char** argv) {
  const Settings settings(argc, argv, {{"operators", 100}, {"run", 64}, {"dynamic", 0}, {"threads", 1}, {"tuples", 100'000}});
  const auto run = settings.size("run");
  const Pipeline pipeline({.operators = settings.size("operators"),
                           .load = {.cost = 1, .run = static_cast<std::int64_t>(run)},
                           .models = all(settings.whole("dynamic") != 0 ? ThreadingModel::Dynamic : ThreadingModel::Manual),
                           .threads = static_cast<unsigned>(settings.size("threads")),
                           .options = {.run_records = run}});
  while (pipeline.rows() < settings.whole("tuples")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::printf("%lld tuples\n", static_cast<long long>(pipeline.rows()));
}
