// Options that Python passes by name, as a dict: each is read once, and one that nobody reads is an error.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace rayelastic::python {

class NamedOptions {
 public:
  NamedOptions(std::string operator_name, nanobind::dict options) : operator_(std::move(operator_name)), options_(std::move(options)) {}

  // Leaves `into` as it is where there is no such option, or it is None.
  template <typename Value>
  void read(const char* name, Value& into) {
    if (!options_.contains(name)) return;
    ++read_;
    const nanobind::object value = options_[name];
    if (!value.is_none() && !nanobind::try_cast(value, into)) throw std::invalid_argument(where() + name + " is of another type");
  }
  template <typename Value>
  [[nodiscard]] Value get(const char* name, Value otherwise = {}) {
    read(name, otherwise);
    return otherwise;
  }
  // Throws std::invalid_argument if there is one that wasn't read.
  void check_all_read() const {
    if (read_ != options_.size()) throw std::invalid_argument(where() + "has an option that there isn't");
  }

 private:
  [[nodiscard]] std::string where() const { return "operator '" + operator_ + "': "; }

  std::string operator_;
  nanobind::dict options_;
  std::size_t read_ = 0;
};

}  // namespace rayelastic::python
