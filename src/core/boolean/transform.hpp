// The fast Walsh-Hadamard transform, and characters of given inputs.
#pragma once

#include "arrays.hpp"

namespace certree {

// Computes transformed[S] = scale * sum over u of values[u] (-1)^(number of bits set in u & S).
// Both have 2^k entries.
void walsh_hadamard(std::span<const double> values, double scale, int n_threads,
                    std::span<double> transformed);

// Multiplies features, to evaluate characters. feature: (n_bits, n) value of each bit's feature for
// n inputs; product: (n_sets, n), whose row i is the product of the rows bits[start[i]], ...,
// bits[start[i + 1] - 1] of feature.
void multiply_features(Table<const double> feature, std::span<const std::int64_t> start,
                       std::span<const std::int32_t> bits, int n_threads, Table<double> product);

}  // namespace certree
