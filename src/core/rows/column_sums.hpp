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

// The word of a number is its mixed bits as double: 0 that of zeros of either sign, and all NaN
// have one. The word of a row is that of its target mixed with the sum of the words of its numbers.
// A column of numbers adds up products of both words, a level those of its rows.
//
// columns: (p,) of n rows each. n_levels: (p,) 0: a column of numbers, else how many categories
// there are and one for missing values, which all that is no category is. targets: (n,) words.
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
