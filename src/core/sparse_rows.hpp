// Rows most of whose values are 0, of which the others are stored.
#pragma once

#include "parallel.hpp"

namespace certree {

template <class Real>
struct SparseRows {
  std::span<const std::int64_t> start;    // (n + 1,) where the values of each row start
  std::span<const std::int32_t> feature;  // ascending within a row
  std::span<const Real> value;
  std::int64_t width = 0;

  std::int64_t n_rows() const { return std::ssize(start) - 1; }
};

// Calls take(i, row, counter) with each row as a dense one, which it is until the next one, in
// memory of one row a thread. What take does is for its tally to say.
template <class Real, class Take>
void for_each_dense_row(const SparseRows<Real>& rows, int n_threads, const Take& take) {
  // To clear the memory is worth so many rows.
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
      take(i, dense.data(), counter);
      for (std::size_t k = begin; k < end; ++k)
        dense[static_cast<std::size_t>(rows.feature[k])] = 0;
    }
    counter.flush();
  });
}

}  // namespace certree
