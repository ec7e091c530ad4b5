// The Arrow PyCapsule interface: record batches across the border to Python by __arrow_c_array__, without copies and without an
// Arrow library. All functions: GIL.
#pragma once

#include <nanobind/nanobind.h>

#include "rayelastic/arrow/arrow_c.h"

namespace rayelastic::python {

namespace nb = nanobind;

// An Arrow C struct that is released unless somebody took it over.
template <typename T>
struct ArrowOwned : T {
  ArrowOwned() : T{} {}
  ArrowOwned(const ArrowOwned&) = delete;
  ArrowOwned& operator=(const ArrowOwned&) = delete;
  ~ArrowOwned() {
    if (this->release != nullptr) this->release(this);
  }
};

// Moves a batch out of anything with __arrow_c_array__; TypeError if it has none.
void import_batch(nb::handle batch, ArrowArray* array, ArrowSchema* schema);

// A pyarrow.RecordBatch; takes array and schema over, also when it throws.
[[nodiscard]] nb::object export_batch(ArrowArray* array, ArrowSchema* schema);

}  // namespace rayelastic::python
