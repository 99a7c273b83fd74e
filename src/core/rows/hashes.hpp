// Hashes of the values of rows.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "grow/bins.hpp"
#include "numbers.hpp"
#include "sparse_rows.hpp"

namespace certree {

// Shortest run of zeros that is hashed as one word, so that zeros of a sparse row cost no time.
inline constexpr std::int64_t kLongRun = 256;

// Returns the bits of a value; -0.0 counts as 0.0, and all NaN as one NaN.
CERTREE_INLINE std::uint64_t bits_of(double value) {
  constexpr auto nan = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);
  return value == value ? bits : nan;
}

// Hashes each row. A value's bits as double enter the hash by a step of splitmix64 (Steele, Lea and
// Flood, "Fast splittable pseudorandom number generators", 2014). rounded: round values to float
// first, and start from another state, so that hashes differ from those of exact values. hash:
// (n_rows,) is overwritten.
template <class Real>
void hash_rows(const SparseRows<Real>& rows, bool rounded, int n_threads,
               std::span<std::uint64_t> hash);
// The same for dense rows. columns: in the order in which they enter the hash; at least one.
void hash_rows(std::span<const FeatureValues> columns, bool rounded, int n_threads,
               std::span<std::uint64_t> hash);

}  // namespace certree
