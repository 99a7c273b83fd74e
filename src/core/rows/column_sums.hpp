// Sums of row hashes by column and by category. They order columns and number categories by what
// rows hold, not by the place of a column or the name of a category.
#pragma once

#include <vector>

#include "grow/bins.hpp"

namespace certree {

// Sums of a block of rows; those of two blocks can be added. All arithmetic is modulo 2^64.
struct ColumnSums {
  std::vector<std::uint64_t> numbers;        // (p,) sums of numeric columns; 0 for categorical ones
  std::vector<std::int64_t> category_start;  // (p + 1,) where the categories of each column start
  // Number of rows of each category, and the sum of their hashes; missing values come last.
  std::vector<std::uint64_t> n_rows, words;
};

// Sums up hashes of rows by column, and by category of categorical columns.
//
// The hash of a number is mixed(bits of the double); zeros of either sign have one hash, and so do
// all NaN. The hash of a row is mixed(hash of its target + sum of the hashes of its numbers). The
// sum of a column of numbers is that of hash(number) * hash(row) over the rows; the sum of a
// category is that of the hashes of its rows. All arithmetic is modulo 2^64.
//
// columns: (p,) of n rows each. n_categories: (p,) 0 for a numeric column, else the number of
// categories plus one for missing values; a code out of range counts as missing. targets: (n,)
// hashes of the targets.
ColumnSums column_sums(std::span<const FeatureValues> columns,
                       std::span<const std::int32_t> n_categories,
                       std::span<const std::uint64_t> targets, int n_threads);

// Returns the columns sorted by a key; columns with equal keys keep their relative order. The key
// of a numeric column is its sum; that of a categorical one is the sum over its categories of
// mixed(words + mixed(2 n_rows + is_missing)).
std::vector<std::int32_t> order_of_columns(const ColumnSums& sums);

// Returns the new code of each category of a column: categories with more rows come first, then
// those with smaller words; equal ones keep their relative order.
std::vector<std::int32_t> number_categories_by_rows(std::span<const std::uint64_t> n_rows,
                                                    std::span<const std::uint64_t> words);

}  // namespace certree
