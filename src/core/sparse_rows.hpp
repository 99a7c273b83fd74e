// Sparse tables by rows (CSR).
#pragma once

#include "parallel.hpp"

namespace certree {

// A table (n_rows, width) of which only some values are stored; the others are 0. Row i has the
// values start[i], ..., start[i + 1] - 1. The same layout as scipy.sparse.csr_array.
template <class Real>
struct SparseRows {
  std::span<const std::int64_t> start;    // (n_rows + 1,)
  std::span<const std::int32_t> feature;  // (n_values,) ascending within a row
  std::span<const Real> value;            // (n_values,)
  std::int64_t width = 0;                 // number of features

  std::int64_t n_rows() const { return std::ssize(start) - 1; }
};

// Calls visit(i, row, counter) for each row i, written out with its zeros: row is (width,) and
// valid until visit returns. Each thread holds one such row. visit adds its own steps to counter.
template <class Real, class Visit>
void for_each_dense_row(const SparseRows<Real>& rows, int n_threads, const Visit& visit) {
  // Each task clears a row of memory once, so it takes at least this many rows.
  constexpr std::int64_t kFewest = 64;
  const std::int64_t n = rows.n_rows(), n_workers = std::max(n_threads, 1);
  const std::int64_t block = std::max(kFewest, (n + 4 * n_workers - 1) / (4 * n_workers));
  parallel_for((n + block - 1) / block, n_threads, [&](std::int64_t b) {
    std::vector<Real> dense(static_cast<std::size_t>(rows.width));
    StepCounter counter;
    for (std::int64_t i = b * block; i < std::min(n, (b + 1) * block); ++i) {
      const auto begin = static_cast<std::size_t>(rows.start[static_cast<std::size_t>(i)]);
      const auto end = static_cast<std::size_t>(rows.start[static_cast<std::size_t>(i) + 1]);
      counter.add(2 * static_cast<std::int64_t>(end - begin) + 1);
      for (std::size_t k = begin; k < end; ++k)
        dense[static_cast<std::size_t>(rows.feature[k])] = rows.value[k];
      visit(i, dense.data(), counter);
      for (std::size_t k = begin; k < end; ++k)
        dense[static_cast<std::size_t>(rows.feature[k])] = 0;
    }
    counter.flush();
  });
}

}  // namespace certree
