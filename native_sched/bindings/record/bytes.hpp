// Values at places in records that needn't be aligned for them.
#pragma once

#include <cstddef>
#include <cstring>

namespace rayelastic::python {

template <class T>
[[nodiscard]] T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(static_cast<void*>(&value), from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace rayelastic::python
