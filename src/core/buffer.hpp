// Buffer: memory for plain numbers that is written before it is read.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace certree {

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

template <class T>
using Buffer = std::unique_ptr<T[], Free>;

// Not initialised. Large buffers ask for large pages: the first touch of a page costs as much as a
// hundred nodes of a loop.
template <class T>
Buffer<T> make_buffer(std::int64_t n) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  void* memory = nullptr;
#if defined(__linux__)
  if (bytes >= 2 * kLargePage) {
    const std::size_t rounded = (bytes + kLargePage - 1) / kLargePage * kLargePage;
    memory = std::aligned_alloc(kLargePage, rounded);
    if (memory) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: failing does no harm
  }
#endif
  if (!memory) memory = std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw std::bad_alloc();
  return Buffer<T>(static_cast<T*>(memory));
}

}  // namespace certree
