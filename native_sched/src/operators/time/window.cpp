#include "rayelastic/operators/time/window.hpp"

#include <stdexcept>

#include "operators/time/window_kinds.hpp"
#include "record/time_field.hpp"

namespace rayelastic {

OperatorSpec make_window(std::string name, std::shared_ptr<const Schema> input, std::shared_ptr<const Schema> output,
                         const std::vector<std::string>& keys, const WindowOptions& options, const std::vector<Aggregate>& aggregates) try {
  OperatorSpec spec;
  spec.input = std::move(input);
  spec.output = std::move(output);
  if (options.size < 1 || options.size > kLongestSpan || options.slide < 1 || options.slide > kLongestSpan)
    throw std::invalid_argument("a window's size and slide have to be at least 1, and not too long");
  switch (options.kind) {
    case WindowKind::Count:
      make_count_window(spec, keys, options, aggregates);
      break;
    case WindowKind::Time:
      make_time_window(spec, keys, options, aggregates);
      break;
    case WindowKind::Session:
      make_session_window(spec, keys, options, aggregates);
      break;
    case WindowKind::Assigned:
      make_assigned_window(spec, keys, options, aggregates);
      break;
  }
  options.times.check(options.size, options.slide);
  if (options.ttl.ticks != 0 && (options.kind != WindowKind::Count || options.rest))
    throw std::invalid_argument("a time to live is of windows by count that emit no rest");
  if (options.lateness < 0 || options.lateness > kLongestSpan || (options.lateness > 0 && options.kind == WindowKind::Count))
    throw std::invalid_argument("lateness is of windows by time, and not too long");
  if (options.kind != WindowKind::Count) {
    for (std::size_t i = keys.size(); i < keys.size() + 2; ++i) {
      if (spec.output->fields()[i].type != spec.input->find(options.time)->type)
        throw std::invalid_argument("start and end have to be of the type of field '" + options.time + "'");
    }
    if (options.lateness > 0 && spec.output->fields()[keys.size() + 2].type != Type::Bool)
      throw std::invalid_argument("what says whether a window is corrected has to be a bool");
    spec.further_outputs.push_back(spec.input);
  }
  spec.name = std::move(name);
  return spec;
} catch (const std::invalid_argument& problem) {
  throw std::invalid_argument("operator '" + name + "': " + problem.what());
}

}  // namespace rayelastic
