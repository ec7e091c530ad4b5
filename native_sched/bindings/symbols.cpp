// Addresses of the C functions that compiled code calls by name (abi.h, text.h, ...), for llvmlite's add_symbol: the extension is
// loaded privately, so the loader doesn't find them by itself.
#include <nanobind/stl/string.h>

#include "rayelastic/abi.h"
#include "rayelastic/number_text.h"
#include "rayelastic/pattern.h"
#include "rayelastic/span.h"
#include "rayelastic/text.h"
#include "wrappers.hpp"

namespace rayelastic::python {

void bind_symbols(nb::module_& module) {
  nb::dict symbols;
  const auto add = [&symbols](const char* name, auto* function) { symbols[name] = reinterpret_cast<std::uintptr_t>(function); };
  add("rel_flush", &rel_flush);
  add("rel_kept", &rel_kept);
  add("rel_finish", &rel_finish);
  add("rel_allocate", &rel_allocate);
  add("rel_keep_text", &rel_keep_text);
  add("rel_fail", &rel_fail);
  add("rel_text_to_int", &rel_text_to_int);
  add("rel_text_to_float", &rel_text_to_float);
  add("rel_text_is_valid", &rel_text_is_valid);
  add("rel_text_repair", &rel_text_repair);
  add("rel_text_of_float", &rel_text_of_float);
  add("rel_rounded", &rel_rounded);
  add("rel_span_times", &rel_span_times);
  add("rel_span_over", &rel_span_over);
  add("rel_span_shared", &rel_span_shared);
  add("rel_pattern", &rel_pattern);
  add("rel_pattern_find", &rel_pattern_find);
  module.def(
      "symbols", [symbols] { return symbols.attr("copy")(); }, nb::sig("def symbols() -> dict[str, int]"),
      "Engine services by name, with their addresses in this process.");
  module.attr("ABI_VERSION") = REL_ABI_VERSION;
}

}  // namespace rayelastic::python
