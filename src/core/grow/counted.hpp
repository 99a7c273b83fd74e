// Growth from sums over bins: a cell is cut where sums of whole numbers say, row by row is only
// added up. The tree depends neither on the order of rows nor on the number of threads.
#pragma once

#include "grow/binned.hpp"
#include "grow/grow.hpp"

namespace certree {

// Which rows do what; all are numbers of rows of the table.
struct CountedRows {
  std::span<const std::int32_t> growing;  // a row that is given twice counts twice
  std::span<const std::int32_t> others;   // are sent along, without influence
};

// Which cuts are looked at, and which of them are made.
struct Counting {
  std::span<const std::int32_t> features;  // those that the tree may compare, ascending
  std::int64_t max_leaves;
  std::int32_t max_depth;
  std::int64_t min_rows;  // growing rows on either side of a cut
  double min_hessian;     // sum of Hessians on either side
  double l2;              // added to sums of Hessians
  double min_gain;
  bool best_first;                         // else level by level
  std::span<const std::int8_t> monotonic;  // (p,) sign of the slope, 0: any; or empty
  Table<const std::uint8_t> groups;        // (k, p) features that may act together; or no rows
  int n_threads;
};

struct CountedTree {
  TreeColumns columns;
  // (m, any) Of the growing rows of each node: gradients and Hessians, or classes; number.
  std::vector<double> sums;
};

// Classes with weights; an empty one: each row counts once.
struct ClassResponse {
  std::span<const std::int32_t> y;  // (n,) in 0 .. n_classes - 1
  std::int32_t n_classes;
  std::span<const double> weight;  // (n,)
  Criterion criterion;             // gini or entropy
};

// leaf: (n,) of the rows that are given; others stay as they are.
CountedTree grow_gradients(const BinnedTable& table, const CountedRows& rows,
                           const Counting& counting, std::span<const double> gradient,
                           std::span<const double> hessian, std::span<std::int32_t> leaf);

// Hessians stand for weights.
CountedTree grow_classes(const BinnedTable& table, const CountedRows& rows,
                         const Counting& counting, const ClassResponse& response,
                         std::span<std::int32_t> leaf);

}  // namespace certree
