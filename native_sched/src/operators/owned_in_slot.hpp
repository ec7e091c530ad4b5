// An object that the slot of a table of keys owns by its only pointer: null for a new key. Operators that keep more for a key than a record of
// fixed size keep it so.
//
// Invariant: whoever empties the slot destroys the object; the table itself never does. So an operator calls drop_all at its end.
#pragma once

#include <memory>
#include <utility>

#include "rayelastic/state/keyed_state.hpp"

namespace rayelastic {

template <class Object>
class OwnedInSlot {
 public:
  // Null: there is none.
  [[nodiscard]] static Object* find(void* slot) noexcept { return place(slot); }
  [[nodiscard]] static const Object& get(const void* slot) noexcept { return **static_cast<Object* const*>(slot); }
  [[nodiscard]] static Object& obtain(void* slot) {
    if (place(slot) == nullptr) place(slot) = new Object;
    return *place(slot);
  }
  // Into an empty slot.
  static void put(void* slot, Object&& object) { place(slot) = new Object(std::move(object)); }
  [[nodiscard]] static std::unique_ptr<Object> take(void* slot) noexcept {
    return std::unique_ptr<Object>(std::exchange(place(slot), nullptr));
  }
  static void drop(void* slot) noexcept { take(slot).reset(); }
  static void drop_all(KeyedState& table) {
    table.for_each([](const StringView&, std::byte* slot) { drop(slot); });
  }

 private:
  static Object*& place(void* slot) noexcept { return *static_cast<Object**>(slot); }
};

}  // namespace rayelastic
