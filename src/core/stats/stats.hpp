// Statistics of the rows in every node of a tree, and the labels, probabilities and means of nodes.
//
// m is the number of nodes. A node without rows takes over the prediction of its parent.
#pragma once

#include "counts.hpp"

namespace certree {

// Rows by the leaf that each of them reaches.
struct RoutedRows {
  std::span<const std::int32_t> leaf;  // (n_rows,) number of the leaf
  std::span<const double> weight;      // (n_rows,), or empty: every weight is 1

  std::size_t size() const { return leaf.size(); }
  double weight_of(std::size_t i) const { return weight.empty() ? 1.0 : weight[i]; }
  std::size_t leaf_of(std::size_t i) const { return static_cast<std::size_t>(leaf[i]); }
};

// Sums up row weights by node and class. y: (n_rows,) classes; counts: (m, n_classes).
void count(Shape tree, const RoutedRows& rows, std::span<const std::int32_t> y,
           Table<double> counts);

// Class counts of all nodes as CountEntries that own their memory.
struct CountedEntries {
  std::vector<std::int64_t> begin;  // (m + 1,)
  std::vector<std::int32_t> classes;
  std::vector<double> weight;
};

// Returns the same sums as entries, for many classes of which most nodes have few.
CountedEntries count_entries(Shape tree, const RoutedRows& rows, std::span<const std::int32_t> y);

// Computes moments of a numeric target (n_rows,) by node. total: (m,) weight of the rows; mean:
// (m,) weighted mean; squares: (m,) weighted sum of squared distances from the mean. A node without
// rows has the mean of its parent.
void moments(Shape tree, const RoutedRows& rows, std::span<const double> target,
             std::span<double> total, std::span<double> mean, std::span<double> squares);

// Computes the moments of inner nodes from those of the leaves, which the caller has filled in.
void combine_moments(Shape tree, std::span<double> total, std::span<double> mean,
                     std::span<double> squares);

// -- Exact sums: sums of float64 by group that do not depend on the order of the rows, nor on how
// they are divided into blocks. In each group a value is rounded to an integer multiple of a small
// unit, and the rest to a multiple of a still smaller unit; both units follow from the largest
// absolute value of the group and from n, the number of rows of all blocks or more. The two
// integers are added up exactly. group: (n_rows,) numbers of groups; values: (n_rows,) finite.

// Computes the smallest and the largest value of each group. ranges: (n_groups, 2); (inf, -inf) for
// an empty group.
void group_ranges(std::span<const std::int32_t> group, std::span<const double> values,
                  Table<double> ranges);

// Sums up the integers of each group. largest: (n_groups,) upper bounds of absolute values; sums:
// (n_groups, 2), which blocks can add up.
void exact_sums(std::span<const std::int32_t> group, std::span<const double> values,
                std::span<const double> largest, std::int64_t n, Table<std::int64_t> sums);

// Converts exact sums (n_groups, 2) back to float64, (n_groups,). largest and n: as in
// exact_sums().
void exact_sums_to_doubles(Table<const std::int64_t> sums, std::span<const double> largest,
                           std::int64_t n, std::span<double> totals);

// -- predictions of nodes

// Finds the majority class of each node. label: (m,) the class of the largest weight, on ties the
// lowest; 0 for a root without rows.
void majority(Shape tree, const Counts& counts, std::span<std::int32_t> label);

// Computes class probabilities of each node, smoothed towards its parent's; those of a root towards
// uniform ones. counts, frequency: (m, n_classes).
void frequencies(Shape tree, Table<const double> counts, Smoothing smoothing,
                 Table<double> frequency);

// Computes means of each node, smoothed towards its parent's; the mean of a root stays. rows: (m,)
// weight of the rows; mean, value: (m,) mean before and after.
void smoothed_means(Shape tree, std::span<const double> rows, std::span<const double> mean,
                    Smoothing smoothing, std::span<double> value);

}  // namespace certree
