// Addresses of the C functions that compiled code calls by name (abi.h, text.h, ...), for llvmlite's add_symbol: the extension is
// loaded privately, so the loader doesn't find them by itself.
#include <nanobind/stl/string.h>

#include "rayelastic/abi.h"
#include "rayelastic/pattern/pattern.h"
#include "rayelastic/text/json.h"
#include "rayelastic/text/number_text.h"
#include "rayelastic/text/span.h"
#include "rayelastic/text/text.h"
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
  add("rel_emit", &rel_emit);
  add("rel_port", &rel_port);
  add("rel_watermark", &rel_watermark);
  add("rel_text_to_int", &rel_text_to_int);
  add("rel_text_to_float", &rel_text_to_float);
  add("rel_text_of_int", &rel_text_of_int);
  add("rel_text_of_point", &rel_text_of_point);
  add("rel_text_bytes_to_int", &rel_text_bytes_to_int);
  add("rel_text_change_case", &rel_text_change_case);
  add("rel_text_translate", &rel_text_translate);
  add("rel_text_is_of", &rel_text_is_of);
  add("rel_text_is_cased", &rel_text_is_cased);
  add("rel_text_find", &rel_text_find);
  add("rel_text_last", &rel_text_last);
  add("rel_text_count", &rel_text_count);
  add("rel_text_starts", &rel_text_starts);
  add("rel_text_slice", &rel_text_slice);
  add("rel_text_replace", &rel_text_replace);
  add("rel_text_pad", &rel_text_pad);
  add("rel_text_zfill", &rel_text_zfill);
  add("rel_text_expand_tabs", &rel_text_expand_tabs);
  add("rel_text_rsplit_space", &rel_text_rsplit_space);
  add("rel_text_rsplit", &rel_text_rsplit);
  add("rel_text_lines", &rel_text_lines);
  add("rel_text_decode", &rel_text_decode);
  add("rel_text_encode", &rel_text_encode);
  add("rel_text_hex", &rel_text_hex);
  add("rel_text_is_valid", &rel_text_is_valid);
  add("rel_text_repair", &rel_text_repair);
  add("rel_json_is_null", &rel_json_is_null);
  add("rel_json_member", &rel_json_member);
  add("rel_json_element", &rel_json_element);
  add("rel_json_contains", &rel_json_contains);
  add("rel_json_length", &rel_json_length);
  add("rel_json_is_true", &rel_json_is_true);
  add("rel_json_to_int", &rel_json_to_int);
  add("rel_json_to_float", &rel_json_to_float);
  add("rel_json_to_same_float", &rel_json_to_same_float);
  add("rel_json_to_bool", &rel_json_to_bool);
  add("rel_json_to_text", &rel_json_to_text);
  add("rel_json_is_text", &rel_json_is_text);
  add("rel_json_order_int", &rel_json_order_int);
  add("rel_json_order_float", &rel_json_order_float);
  add("rel_text_of_float", &rel_text_of_float);
  add("rel_rounded", &rel_rounded);
  add("rel_span_times", &rel_span_times);
  add("rel_span_over", &rel_span_over);
  add("rel_span_shared", &rel_span_shared);
  add("rel_pattern", &rel_pattern);
  add("rel_pattern_find", &rel_pattern_find);
  add("rel_pattern_sub", &rel_pattern_sub);
  module.def(
      "symbols", [symbols] { return symbols.attr("copy")(); }, nb::sig("def symbols() -> dict[str, int]"),
      "Engine services by name, with their addresses in this process.");
  module.attr("ABI_VERSION") = REL_ABI_VERSION;
}

}  // namespace rayelastic::python
