// The fast Walsh-Hadamard transform, and characters of rows.
#pragma once

#include "arrays.hpp"

namespace certree {

// transformed[S] = scale * sum over u of values[u] (-1)^|u & S|; both have 2^n entries.
void walsh_hadamard(std::span<const double> values, double scale, int n_threads,
                    std::span<double> transformed);

// Products of features: product.row(i) is that of the rows of feature whose numbers stand in
// bits[start[i]], ..., bits[start[i + 1] - 1].
void multiply_features(Table<const double> feature, std::span<const std::int64_t> start,
                       std::span<const std::int32_t> bits, int n_threads, Table<double> product);

}  // namespace certree
