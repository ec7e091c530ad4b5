#include "rayelastic/operators/time/window.hpp"

#include <algorithm>
#include <stdexcept>

#include "operators/time/window_kinds.hpp"
#include "rayelastic/operators/aggregate/own_aggregate.hpp"
#include "record/time_field.hpp"

namespace rayelastic {

std::shared_ptr<Operator> make_window(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output,
                                      const std::vector<std::string>& keys, const WindowOptions& options,
                                      const std::vector<Aggregate>& aggregates) try {
  constexpr MakeWindow* kKinds[] = {make_count_window, make_time_window, make_span_window, make_span_window,
                                    make_span_window};  // by WindowKind
  if (options.size < 1 || options.size > kLongestSpan || options.slide < 1 || options.slide > kLongestSpan)
    throw std::invalid_argument("a window's size and slide have to be at least 1, and not too long");
  const WindowPorts ports{name, std::move(input), std::move(output)};
  const bool is_aggregated = options.function == nullptr;
  if (is_aggregated ? (options.kind == WindowKind::Batch && !options.in_order) || options.now || options.every > 0 || options.update
                    : options.kind == WindowKind::Count)
    throw std::invalid_argument(
        "a function is of windows by the clock and early results, and of no windows by count; batches are in order");
  const bool merges = options.kind == WindowKind::Session && options.lateness > 0;  // in any order
  const bool may_wait = is_aggregated && options.kind != WindowKind::Count && options.kind != WindowKind::Assigned && !merges;
  if (options.in_order && !may_wait)
    throw std::invalid_argument("aggregates take records in order in windows by time, batches, and sessions without a lateness");
  if (!options.in_order &&
      std::ranges::any_of(aggregates, [](const Aggregate& each) { return each.own != nullptr && !each.own->merges(); }))
    throw std::invalid_argument("an aggregate of windows has to merge");
  MakeWindow* const make = is_aggregated && !options.in_order ? kKinds[static_cast<std::size_t>(options.kind)] : make_span_window;
  std::shared_ptr<Operator> window = make(ports, keys, options, aggregates);
  options.times.check(options.size, options.slide);
  if (options.ttl.ticks != 0 && (options.kind != WindowKind::Count || options.rest))
    throw std::invalid_argument("a time to live is of windows by count that emit no rest");
  if (options.lateness < 0 || options.lateness > kLongestSpan || (options.lateness > 0 && options.kind == WindowKind::Count))
    throw std::invalid_argument("lateness is of windows by time, and not too long");
  if (options.kind != WindowKind::Count && is_aggregated) {
    for (std::size_t i = keys.size(); i < keys.size() + 2; ++i) {
      if (ports.output->fields()[i].type != ports.input->find(options.time)->type)
        throw std::invalid_argument("start and end have to be of the type of field '" + options.time + "'");
    }
    if (options.lateness > 0 && ports.output->fields()[keys.size() + 2].type != Type::Bool)
      throw std::invalid_argument("what says whether a window is corrected has to be a bool");
  }
  return window;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
