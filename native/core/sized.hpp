// Sized structs of the C ABI: the first field, `size`, is what the caller's header said the struct's size was. Callers
// with an older header give fewer bytes (the rest is 0, the defaults); callers with a newer one give more (the rest is
// unknown here).
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace finch {

// Copies what the caller has of `T`. False when `size` is below `least`, the size of the struct's first release: then
// the caller forgot to set it.
template <typename T>
bool read_sized(const T* given, size_t least, T* out) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  const size_t size = given->size;
  if (size < least) return false;
  *out = T{};
  std::memcpy(static_cast<void*>(out), given, size < sizeof(T) ? size : sizeof(T));
  out->size = sizeof(T);
  return true;
}

// Writes what the caller has room for; his `size` stays as it is.
template <typename T>
void write_sized(const T& value, T* out) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  const size_t size = out->size;
  std::memcpy(static_cast<void*>(out), &value, size < sizeof(T) ? size : sizeof(T));
  out->size = size;
}

}  // namespace finch
