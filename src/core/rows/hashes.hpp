// Hashes of what rows hold.
#pragma once

#include "sparse_rows.hpp"

namespace certree {

// A word for each value goes into a row's hash by a step of splitmix64 (Steele, Lea and Flood,
// "Fast splittable pseudorandom number generators", 2014): its bits as double, where zeros have no
// sign and all NaN are alike. kLongRun or more zeros in a row are one word, so that the hash of a
// sparse row takes no time for its zeros. rounded: values as float holds them, whose hashes are
// others.
inline constexpr std::int64_t kLongRun = 256;

template <class Real>
void hash_rows(const SparseRows<Real>& rows, bool rounded, int n_threads,
               std::span<std::uint64_t> hash);
template <class Real>
void hash_rows(Table<const Real> rows, bool rounded, int n_threads, std::span<std::uint64_t> hash);

}  // namespace certree
