// Array types of the core: views, which own no memory, and Buffer, which does.
//
// A column is a std::span; an optional column is empty when it is absent. Every file of the core
// includes this one, so it also includes the standard headers that most of them need.
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

// View of a two-dimensional array (n_rows, width) in C order.
template <class T>
struct Table {
  T* data = nullptr;
  std::int64_t n_rows = 0;
  std::int64_t width = 0;

  T* row(std::integral auto i) const { return data + static_cast<std::int64_t>(i) * width; }
  std::span<T> values() const { return {data, static_cast<std::size_t>(n_rows * width)}; }
  // A writable table converts to a read-only one.
  operator Table<const T>() const
    requires(!std::is_const_v<T>)
  {
    return {data, n_rows, width};
  }
};

// Maps memory to an unnamed file if the call of this thread keeps large arrays in files; otherwise
// returns null. See scratch.hpp.
void* map_scratch(std::size_t bytes);
void unmap_scratch(void* memory, std::size_t bytes) noexcept;

// Deleter for memory that make_buffer() allocated. mapped_bytes: size of memory that is mapped to a
// file, else 0.
struct FreeMemory {
  std::size_t mapped_bytes = 0;

  void operator()(void* memory) const noexcept {
    if (mapped_bytes > 0)
      unmap_scratch(memory, mapped_bytes);
    else
      std::free(memory);
  }
};

// Owned array of numbers, uninitialised until it is written.
template <class T>
using Buffer = std::unique_ptr<T[], FreeMemory>;

// Thrown when an allocation fails: the message of std::bad_alloc itself does not help a user.
class OutOfMemory : public std::bad_alloc {
 public:
  const char* what() const noexcept override {
    return "not enough memory: an array of this size cannot be allocated";
  }
};

// Returns the product of lengths. Throws OutOfMemory if it exceeds the largest size in bytes.
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

// Allocates an uninitialised array with as many entries as the product of lengths. Throws
// OutOfMemory. Buffers of 1 MiB or more are mapped to files if the call keeps large arrays there.
// Otherwise large buffers request large pages, as the first access to each page is slow.
template <class T>
Buffer<T> make_buffer(std::integral auto... lengths) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  constexpr std::size_t kWorthFile = std::size_t{1} << 20;
  const std::size_t bytes = checked_size(lengths..., sizeof(T));
  void* memory = bytes >= kWorthFile ? map_scratch(bytes) : nullptr;
  if (memory) return Buffer<T>(static_cast<T*>(memory), FreeMemory{bytes});
#if defined(__linux__)
  if (bytes >= 2 * kLargePage) {
    const std::size_t rounded = (bytes + kLargePage - 1) / kLargePage * kLargePage;
    memory = std::aligned_alloc(kLargePage, rounded);
    if (memory) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint, so its failure is ignored
  }
#endif
  if (!memory) memory = std::malloc(bytes > 0 ? bytes : 1);
  if (!memory) throw OutOfMemory();
  return Buffer<T>(static_cast<T*>(memory));
}

}  // namespace certree
