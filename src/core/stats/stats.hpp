// The statistics of the rows in every node, and what they make a node say.
//
// A node without rows says what its parent does.
#pragma once

#include "counts.hpp"

namespace certree {

// Rows whose leaves are known.
struct RoutedRows {
  std::span<const std::int32_t> leaf;  // (n_rows,) the leaf that each reaches
  std::span<const double> weight;      // (n_rows,), or empty: each counts once

  std::size_t size() const { return leaf.size(); }
  double weight_of(std::size_t i) const { return weight.empty() ? 1.0 : weight[i]; }
  std::size_t leaf_of(std::size_t i) const { return static_cast<std::size_t>(leaf[i]); }
};

// counts: (m, n_classes), weight of the rows of each class y (n_rows,) in each node.
void count(Shape tree, const RoutedRows& rows, std::span<const std::int32_t> y,
           Table<double> counts);

// The same for many classes, of which most nodes hold few: entries of each node by ascending class.
struct CountedEntries {
  std::vector<std::int64_t> begin;  // (m + 1,)
  std::vector<std::int32_t> classes;
  std::vector<double> weight;
};
CountedEntries count_entries(Shape tree, const RoutedRows& rows, std::span<const std::int32_t> y);

// total, mean, squares: (m,) weight of the rows in each node, mean of their targets (n_rows,) and
// weighted sum of squared distances from it.
void moments(Shape tree, const RoutedRows& rows, std::span<const double> target,
             std::span<double> total, std::span<double> mean, std::span<double> squares);

// The same of nodes by what is known of the leaves; others are written over.
void gather_moments(Shape tree, std::span<double> total, std::span<double> mean,
                    std::span<double> squares);

// -- sums that no order of the rows changes, by cells, of which there are c

// ends: (c, 2) the smallest and the largest value of each cell, infinite where it has none.
void ends_of_cells(std::span<const std::int32_t> cell, std::span<const double> values,
                   Table<double> ends);
// sums: (c, 2) whole numbers, those of parts of the rows add up. largest: (c,) magnitudes; n: at
// least how many rows there are.
void sums_of_cells(std::span<const std::int32_t> cell, std::span<const double> values,
                   std::span<const double> largest, std::int64_t n, Table<std::int64_t> sums);
// What sums mean, (c,).
void numbers_of_sums(Table<const std::int64_t> sums, std::span<const double> largest,
                     std::int64_t n, std::span<double> numbers);

// label: (m,) the class with the largest count, ties to the lowest; a root without rows has class
// 0.
void majority(Shape tree, const Counts& counts, std::span<std::int32_t> label);

// frequency: (m, n_classes), shares of the classes among the rows of a node and `smoothing` more
// that are like its parent's shares; the root's parent has uniform ones.
void frequencies(Shape tree, Table<const double> counts, Smoothing smoothing,
                 Table<double> frequency);

// value: (m,) mean over the rows of a node and `smoothing` more that are like its parent's value.
// rows, mean: (m,) of each node.
void smoothed_means(Shape tree, std::span<const double> rows, std::span<const double> mean,
                    Smoothing smoothing, std::span<double> value);

}  // namespace certree
