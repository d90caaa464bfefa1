// Room for `size` values: on the stack up to N, so that a call of ordinary size allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace finch {

template <typename T, size_t N>
class SmallBuffer {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // The values are not initialised. Throws std::bad_alloc.
  explicit SmallBuffer(size_t size) : size_(size) {
    if (size > N) heap_ = std::make_unique_for_overwrite<T[]>(size);
    data_ = size > N ? heap_.get() : reinterpret_cast<T*>(stack_);
  }
  SmallBuffer(const SmallBuffer&) = delete;
  SmallBuffer& operator=(const SmallBuffer&) = delete;

  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  T& operator[](size_t i) noexcept { return data_[i]; }
  const T& operator[](size_t i) const noexcept { return data_[i]; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }

 private:
  size_t size_;
  T* data_;
  std::unique_ptr<T[]> heap_;
  alignas(64) unsigned char stack_[N * sizeof(T)];
};

}  // namespace finch
