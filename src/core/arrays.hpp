// Arrays as the loops see them, and memory of their own: views own nothing, a Buffer does.
//
// A column is a std::span. One that may be left out is empty then. All files of the core include
// this one, so it brings the standard headers that most of them need.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace certree {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows of one width, in C order.
template <class T>
struct Table {
  T* data = nullptr;
  std::int64_t n_rows = 0;
  std::int64_t width = 0;

  T* row(std::integral auto i) const { return data + static_cast<std::int64_t>(i) * width; }
  std::span<T> values() const { return {data, static_cast<std::size_t>(n_rows * width)}; }
  // What may be written to may be read.
  operator Table<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, n_rows, width};
  }
};

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

// Memory for plain numbers that is written before it is read.
template <class T>
using Buffer = std::unique_ptr<T[], Free>;

// What is thrown where memory does not suffice: std::bad_alloc's own words say nothing to a reader.
class OutOfMemory : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "not enough memory: an array of this size cannot be had";
  }
};

// The product of lengths, if so many bytes can be addressed.
std::size_t checked_size(std::integral auto... lengths) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  std::size_t size = 1;
  const auto multiply = [&](auto length) {
    if (std::cmp_less(length, 0)) throw OutOfMemory();
    const auto factor = static_cast<std::size_t>(length);
    if (factor > 0 && size > kMost / factor) throw OutOfMemory();
    size *= factor;
  };
  (multiply(lengths), ...);
  return size;
}

// As many entries as the product of lengths. Not initialised. Large buffers ask for large pages:
// the first touch of a page costs as much as a hundred nodes of a loop.
template <class T>
Buffer<T> make_buffer(std::integral auto... lengths) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  const std::size_t bytes = checked_size(lengths..., sizeof(T));
  void* memory = nullptr;
#if defined(__linux__)
  if (bytes >= 2 * kLargePage) {
    const std::size_t rounded = (bytes + kLargePage - 1) / kLargePage * kLargePage;
    memory = std::aligned_alloc(kLargePage, rounded);
    if (memory) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: failing does no harm
  }
#endif
  if (!memory) memory = std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw OutOfMemory();
  return Buffer<T>(static_cast<T*>(memory));
}

}  // namespace certree
