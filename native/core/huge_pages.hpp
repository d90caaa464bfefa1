// Memory for arrays that are read here and there: on huge pages, where there are any, so that most reads find their
// page in the TLB. For arrays of one owner; pieces of many are in pieces.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace finch {

// Allocates as std::allocator, aligned to 64 bytes, and leaves numbers that a vector grows by uninitialised.
template <typename T>
struct HugePages {
  using value_type = T;
  HugePages() noexcept = default;
  template <typename U>
  HugePages(const HugePages<U>&) noexcept {}

  T* allocate(size_t count) {
    if (count > SIZE_MAX / 2 / sizeof(T)) throw std::bad_alloc();
    const size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes, kLine));
    const size_t whole = (bytes + kPage - 1) / kPage * kPage;
    void* const data = ::operator new (whole, std::align_val_t{kPage});
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    static_cast<void>(madvise(data, whole, MADV_HUGEPAGE));  // refused where the kernel has none
#endif
    return static_cast<T*>(data);
  }
  void deallocate(T* data, size_t count) noexcept {
    ::operator delete (data, count * sizeof(T) < kPage ? kLine : std::align_val_t{kPage});
  }

  template <typename U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(static_cast<Arguments&&>(arguments)...);
  }

  friend bool operator==(const HugePages&, const HugePages&) noexcept { return true; }

 private:
  static constexpr size_t kPage = size_t{2} << 20;
  static constexpr std::align_val_t kLine{64};
};

template <typename T>
using HugeVector = std::vector<T, HugePages<T>>;

}  // namespace finch
