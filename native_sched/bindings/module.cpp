// rayelastic._native: the native scheduler for Python. Translates names, values and errors; decides nothing.
#include "python/gate/inside.hpp"
#include "wrappers.hpp"

NB_MODULE(_native, module) {
  namespace python = rayelastic::python;
  nanobind::set_leak_warnings(false);  // schemas are cached for the life of the process
  module.doc() =
      "Native scheduler, operators, links and the Arrow edge of rayelastic. Errors are ValueError and TypeError that name the operator.";
  python::bind_schema(module);
  python::bind_json_lines(module);
  python::bind_keyed_state(module);
  python::bind_arrow(module);
  python::bind_tls(module);
  python::bind_link(module);
  python::bind_routing(module);
  python::bind_own_aggregate(module);
  python::bind_operator(module);
  python::bind_timed_operators();
  python::bind_windows(module);
  python::bind_latency();
  python::bind_held();
  python::bind_processes();
  python::bind_concurrent();
  python::bind_channels(module);
  python::bind_kafka(module);
  python::bind_succession(module);
  python::bind_scheduler_values(module);
  python::bind_scheduler(module);
  python::bind_symbols(module);
  module.def("tell_crashes", python::tell_crashes,
             "Has a crash (SIGSEGV and its kind) write the name of the operator whose Python function it happened in to standard error.");
}
