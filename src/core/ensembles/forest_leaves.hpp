// Leaves of forests: what the rows that reach them sum up to, and what trees would say of rows
// that they had not known.
//
// A row that is out of the bag of a tree has the complement of its leaf's number; only these count.
// What rows sum up to are their weight and, behind it, sums in lanes: a target of numbers, or of
// two classes, has one, of numbers times weights; one of more classes has weights by class.
#pragma once

#include "ensembles/predict.hpp"
#include "grow/binned_growth.hpp"

namespace certree {

// leaf: (n_trees, n) of rows by the order in which they were drawn; 0 for rows in the bag.
template <class Real>
void find_out_of_bag(const TreesView& trees, const Drawing& drawing, Table<const Real> X,
                     int n_threads, Table<std::int32_t> leaf);

// Trees one behind the other, and where rows arrive.
struct Arrivals {
  std::span<const std::int32_t> left;  // (all nodes,)
  std::span<const std::int64_t> root;  // (n_trees,)
  Table<const std::int32_t> leaf;      // (n_trees, n)
};

struct LeafTargets {
  Table<const double> y;                  // (n, q) numbers, or classes
  std::span<const double> weight;         // (n,), or empty
  std::span<const std::int64_t> n_lanes;  // (q,) 1: the sum of y; else one for each class

  double weight_of(std::size_t i) const { return weight.empty() ? 1.0 : weight[i]; }
};

// sums: (all nodes, 1 + lanes) what the rows out of the bags sum up to.
void sum_leaves(const Arrivals& arrivals, const LeafTargets& targets, int n_threads,
                Table<double> sums);

// value: (all nodes, lanes) the means of nodes, drawn to those of their parents by so many
// rows. A node that has none says what its parent does, a root 0.
void shrink_leaves(std::span<const std::int32_t> left, std::span<const std::int64_t> root,
                   Table<const double> sums, double rows, int n_threads, Table<double> value);

// mean: (all nodes, lanes) at inner nodes the means of the leaves below, of so many rows (all
// nodes,) each; at leaves their own values, (all nodes, lanes). Others than leaves are not
// read.
void average_leaves(std::span<const std::int32_t> left, std::span<const double> rows,
                    Table<const double> value, Table<double> mean);

// total: (n_scored, lanes) predictions of trees that did not grow on the row, summed
// up; n_trees: (n_scored,) number of these trees. If sums include the rows, each is left out.
void sum_out_of_bag_predictions(const Arrivals& arrivals, const LeafTargets& targets,
                                Table<const double> sums, bool knows, double rows, int n_threads,
                                Table<double> total, std::span<std::int32_t> n_trees);

}  // namespace certree
