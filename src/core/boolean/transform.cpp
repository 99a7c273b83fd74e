// Two passes over memory: entries that lie together, which fit into the cache, are transformed
// among themselves, and then what stands at the same place of each such block.
#include "boolean/transform.hpp"

#include <bit>

#include "numbers.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// Entries of a block, and entries of each block that are taken together: a line of the cache.
constexpr std::int64_t kBlock = std::int64_t{1} << 12;
constexpr std::int64_t kLine = 8;

// Transforms n rows of so many entries as a whole, two levels at a time.
CERTREE_SIMD_CLONES void transform_rows(double* data, std::int64_t n, std::int64_t width) noexcept {
  std::int64_t half = 1;
  if (std::countr_zero(static_cast<std::uint64_t>(n)) % 2 == 1) {
    for (std::int64_t i = 0; i < n * width; i += 2 * width)
      for (std::int64_t j = i; j < i + width; ++j) {
        const double a = data[j], b = data[j + width];
        data[j] = a + b;
        data[j + width] = a - b;
      }
    half = 2;
  }
  for (; half < n; half *= 4) {
    const std::int64_t step = half * width;
    for (std::int64_t i = 0; i < n * width; i += 4 * step) {
      double* const p = data + i;
      double* const q = p + step;
      double* const r = q + step;
      double* const s = r + step;
      for (std::int64_t j = 0; j < step; ++j) {
        const double a = p[j] + q[j], b = p[j] - q[j], c = r[j] + s[j], d = r[j] - s[j];
        p[j] = a + c;
        q[j] = b + d;
        r[j] = a - c;
        s[j] = b - d;
      }
    }
  }
}

std::int64_t steps_of(std::int64_t n) {
  return n * std::bit_width(static_cast<std::uint64_t>(n)) / 4;
}

}  // namespace

void walsh_hadamard(std::span<const double> values, double scale, int n_threads,
                    std::span<double> transformed) {
  const std::int64_t n = std::ssize(values);
  const std::int64_t block = std::min(n, kBlock), n_blocks = n / block;
  double* const data = transformed.data();
  parallel_for(n_blocks, n_threads, [&](std::int64_t i) {
    count_steps(steps_of(block));
    double* const own = data + i * block;
    for (std::int64_t j = 0; j < block; ++j)
      own[j] = scale * values[static_cast<std::size_t>(i * block + j)];
    transform_rows(own, block, 1);
  });
  if (n_blocks == 1) return;
  // Blocks lie a power of two apart, where few lines fit into the cache together: they are copied.
  parallel_for(block / kLine, n_threads, [&](std::int64_t line) {
    count_steps(steps_of(n_blocks * kLine));
    thread_local std::vector<double> together;
    together.resize(static_cast<std::size_t>(n_blocks * kLine));
    double* const first = data + line * kLine;
    for (std::int64_t i = 0; i < n_blocks; ++i)
      std::copy_n(first + i * block, kLine, together.data() + i * kLine);
    transform_rows(together.data(), n_blocks, kLine);
    for (std::int64_t i = 0; i < n_blocks; ++i)
      std::copy_n(together.data() + i * kLine, kLine, first + i * block);
  });
}

void multiply_features(Table<const double> feature, std::span<const std::int64_t> start,
                       std::span<const std::int32_t> bits, int n_threads, Table<double> product) {
  parallel_for(product.n_rows, n_threads, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    double* const own = product.row(i);
    std::fill_n(own, product.width, 1.0);
    count_steps(product.width);
    for (std::int64_t b = start[place]; b < start[place + 1]; ++b) {
      const double* const factor = feature.row(bits[static_cast<std::size_t>(b)]);
      for (std::int64_t j = 0; j < product.width; ++j) own[j] *= factor[j];
      count_steps(product.width);
    }
  });
}

}  // namespace certree
