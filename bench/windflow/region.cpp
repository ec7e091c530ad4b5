// A region of four operators with state by key in WindFlow, as topologies/joker_regions.py has it ('flow'); see __main__.py.
//
//   region FORM MULTIPLICATIONS KEYS TUPLES      FORM: fused (one thread), queued (two), replicated (one and two by key)
//
// Prints tuples a second. Each operator keeps a map of its own from key to count, as WindFlow's users write it.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>

#include <windflow.hpp>

namespace {

constexpr double kFactor = 1.0000001;
constexpr int kBatch = 64;  // tuples that go through a queue at once: the best of 0, 16, 64, 256

struct Item {
  std::int64_t number = 0;
  std::int64_t key = 0;
  std::int64_t other = 0;
  double value = 1.0;
};

struct Numbers {
  std::int64_t keys;
  std::int64_t tuples;

  void operator()(wf::Source_Shipper<Item>& shipper) {
    for (std::int64_t number = 0; number < tuples; ++number) {
      shipper.pushWithTimestamp(Item{number, number % keys, number / 3 % keys, 1.0}, static_cast<std::uint64_t>(number));
    }
  }
};

struct Multiply {
  int count;
  std::unordered_map<std::int64_t, std::int64_t> seen;

  void operator()(Item& item) {
    ++seen[item.key];
    double value = item.value;
    for (int i = 0; i < count; ++i) value = value * kFactor;
    item.value = value;
  }
};

std::atomic<std::int64_t> arrived{0};

struct Count {
  std::int64_t here = 0;

  void operator()(std::optional<Item>& item) {
    if (item) {
      ++here;
    } else {
      arrived += here;
    }
  }
};

auto multiply(int count, int number, int replicas) {
  auto made = wf::Map_Builder(Multiply{count, {}}).withName("multiply" + std::to_string(number)).withParallelism(replicas);
  return made.withOutputBatchSize(replicas > 1 || number == 1 ? kBatch : 0).build();
}

auto keyed(int count, int replicas) {
  auto by_key = wf::Map_Builder(Multiply{count, {}}).withName("multiply0").withParallelism(replicas);
  return by_key.withKeyBy([](const Item& item) { return item.key; }).build();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string form = argv[1];
  const int count = std::atoi(argv[2]);
  const std::int64_t keys = std::atoll(argv[3]), tuples = std::atoll(argv[4]);
  wf::PipeGraph graph("region", wf::Execution_Mode_t::DEFAULT, wf::Time_Policy_t::EVENT_TIME);
  auto source =
      wf::Source_Builder(Numbers{keys, tuples}).withName("numbers").withOutputBatchSize(form == "replicated" ? kBatch : 0).build();
  auto sink = wf::Sink_Builder(Count{}).withName("out").withParallelism(form == "replicated" ? 2 : 1).build();
  wf::MultiPipe& pipe = graph.add_source(source);
  const int replicas = form == "replicated" ? 2 : 1;
  auto first = keyed(count, replicas);
  auto plain = multiply(count, 0, 1), second = multiply(count, 1, replicas), third = multiply(count, 2, replicas),
       fourth = multiply(count, 3, replicas);
  if (replicas > 1) {
    pipe.add(first);
  } else {
    pipe.chain(plain);
  }
  pipe.chain(second);
  if (form == "queued") {
    pipe.add(third);
  } else {
    pipe.chain(third);
  }
  pipe.chain(fourth);
  pipe.chain_sink(sink);
  const auto began = std::chrono::steady_clock::now();
  graph.run();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (arrived != tuples) {
    std::fprintf(stderr, "%lld tuples arrived of %lld\n", static_cast<long long>(arrived), static_cast<long long>(tuples));
    return 1;
  }
  std::printf("%.0f\n", static_cast<double>(tuples) / took.count());
  return 0;
}
