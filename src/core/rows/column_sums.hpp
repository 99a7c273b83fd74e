// What rows add up to by column and by category: by that columns are put in an order, and
// categories are numbered, wherever they stand and whatever they are called.
#pragma once

#include <vector>

#include "grow/bins.hpp"

namespace certree {

// Sums of some rows; those of more add up. All arithmetic is modulo 2^64.
struct ColumnSums {
  std::vector<std::uint64_t> numbers;        // (p,) of columns of numbers; 0 of the others
  std::vector<std::int64_t> level_start;     // (p + 1,) where the levels of each column start
  std::vector<std::uint64_t> n_rows, words;  // of each level, missing values behind the others
};

// Adds up hashes of rows by column, and by category of categorical columns.
//
// The hash of a number is mixed(bits of the double); zeros of either sign have one hash, and so do
// all NaN. The hash of a row is mixed(hash of its target + sum of the hashes of its numbers). The
// sum of a column of numbers is that of hash(number) * hash(row) over the rows; the sum of a
// category is that of the hashes of its rows. All arithmetic is modulo 2^64.
//
// columns: (p,) of n rows each. n_levels: (p,) 0 for a column of numbers, else the number of
// categories plus one for missing values, which any other code counts as. targets: (n,) hashes.
ColumnSums column_sums(std::span<const FeatureValues> columns,
                       std::span<const std::int32_t> n_levels,
                       std::span<const std::uint64_t> targets, int n_threads);

// Columns by their keys, equal ones as they stand: the sum of a column of numbers, and the sum of
// mixed numbers of rows and words of the levels of others, whatever these are called.
std::vector<std::int32_t> order_of_columns(const ColumnSums& sums);

// The number of each level: those that more rows have come first, then smaller words, then as they
// stand.
std::vector<std::int32_t> numbers_of_levels(std::span<const std::uint64_t> n_rows,
                                            std::span<const std::uint64_t> words);

}  // namespace certree
