// What readers of JSON ask of blocks of lines before another parser gets them: json_lines.h. The GIL is released meanwhile.
#include "rayelastic/text/json_lines.h"

#include <nanobind/stl/string.h>

#include "wrappers.hpp"

namespace rayelastic::python {

void bind_json_lines(nb::module_& module) {
  module.def(
      "are_json_objects",
      [](const nb::bytes& lines, std::int64_t deepest) {
        const nb::gil_scoped_release released;
        return rel_json_are_objects(lines.c_str(), static_cast<std::int64_t>(lines.size()), deepest) != 0;
      },
      nb::arg("lines"), nb::arg("deepest"),
      "Whether lines are UTF-8 with an object each, nested no deeper than so many levels; False where that isn't sure.");
  module.def(
      "has_long_whole_number",
      [](const nb::bytes& lines, const std::string& names) {
        const nb::gil_scoped_release released;
        return rel_json_has_long_whole(lines.c_str(), static_cast<std::int64_t>(lines.size()), names.data(),
                                       static_cast<std::int64_t>(names.size())) != 0;
      },
      nb::arg("lines"), nb::arg("names"),
      "Whether a field of one of these names, a line each, has a whole number of 16 digits or more; an empty line means items of lists.");
}

}  // namespace rayelastic::python
