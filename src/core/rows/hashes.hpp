// Hashes of the values of rows.
#pragma once

#include "sparse_rows.hpp"

namespace certree {

// Shortest run of zeros that is hashed as one word, so that zeros of a sparse row cost no time.
inline constexpr std::int64_t kLongRun = 256;

// Hashes each row. A value's bits as double enter the hash by a step of splitmix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014); -0.0 counts as 0.0, and all NaN
// as one NaN. rounded: round values to float first, and start from another state, so that hashes
// differ from those of exact values. hash: (n_rows,) is overwritten.
template <class Real>
void hash_rows(const SparseRows<Real>& rows, bool rounded, int n_threads,
               std::span<std::uint64_t> hash);
template <class Real>
void hash_rows(Table<const Real> rows, bool rounded, int n_threads, std::span<std::uint64_t> hash);

}  // namespace certree
