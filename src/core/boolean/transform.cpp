// The transform makes two passes over memory: one transforms each block of adjacent entries, which
// fits into the cache, the other transforms across blocks, at each place of a block.
#include "boolean/transform.hpp"

#include <bit>

#include "numbers.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// Entries of a block, and of a cache line, the unit of the second pass.
constexpr std::int64_t kBlock = std::int64_t{1} << 12;
constexpr std::int64_t kLine = 8;

// Transforms the columns of a table (n, width) in place; n is a power of two. Each pass over the
// table does two stages of the butterfly.
CERTREE_SIMD_CLONES void transform_columns(double* data, std::int64_t n,
                                           std::int64_t width) noexcept {
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

// Number of steps to count for a transform of n entries.
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
    double* const first = data + i * block;
    for (std::int64_t j = 0; j < block; ++j)
      first[j] = scale * values[static_cast<std::size_t>(i * block + j)];
    transform_columns(first, block, 1);
  });
  if (n_blocks == 1) return;
  // Lines of different blocks are a power of two apart, so the cache can hold only few of them at a
  // time. They are copied to adjacent memory.
  parallel_for(block / kLine, n_threads, [&](std::int64_t line) {
    count_steps(steps_of(n_blocks * kLine));
    thread_local std::vector<double> lines;
    lines.resize(static_cast<std::size_t>(n_blocks * kLine));
    double* const first = data + line * kLine;
    for (std::int64_t i = 0; i < n_blocks; ++i)
      std::copy_n(first + i * block, kLine, lines.data() + i * kLine);
    transform_columns(lines.data(), n_blocks, kLine);
    for (std::int64_t i = 0; i < n_blocks; ++i)
      std::copy_n(lines.data() + i * kLine, kLine, first + i * block);
  });
}

void multiply_features(Table<const double> feature, std::span<const std::int64_t> start,
                       std::span<const std::int32_t> bits, int n_threads, Table<double> product) {
  parallel_for(product.n_rows, n_threads, [&](std::int64_t i) {
    const auto place = static_cast<std::size_t>(i);
    double* const row = product.row(i);
    std::fill_n(row, product.width, 1.0);
    count_steps(product.width);
    for (std::int64_t b = start[place]; b < start[place + 1]; ++b) {
      const double* const factor = feature.row(bits[static_cast<std::size_t>(b)]);
      for (std::int64_t j = 0; j < product.width; ++j) row[j] *= factor[j];
      count_steps(product.width);
    }
  });
}

}  // namespace certree
