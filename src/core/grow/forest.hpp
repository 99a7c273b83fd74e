// Growth of many trees from binned rows, each on rows of its own that are drawn.
//
// Cells look at few features, and trees are full: rows stand one after the other here, a row's
// codes together, and trees are grown side by side. A tree depends on its number and on the order
// of the rows, not on the number of threads.
#pragma once

#include "grow/binned.hpp"

namespace certree {

// How many times each row grows a tree.
enum class Sampling {
  all,      // once
  some,     // so many of the rows once
  repeated  // so many draws, each among all rows
};

struct ForestSampling {
  Sampling kind;
  std::int64_t n_draws;
  std::uint64_t seed;
};

struct ForestGrowth {
  std::int64_t first, n_trees;        // numbers of the trees
  std::int64_t max_features;          // that vary are looked at in a cell
  std::int64_t max_features_of_tree;  // drawn once for a tree
  bool random_cuts;                   // one random cut of each feature instead of all
  std::int32_t max_depth;
  std::int64_t min_rows;  // on either side of a cut, however often they were drawn
  std::int64_t min_split;
  double min_decrease;  // of the impurity by a cut, times the share of the tree's rows
  int n_threads;
};

// Rows by the order in which they are drawn. The weight of a row is whole, and may be left out.
struct ForestRows {
  KeptBins bins;
  Table<const std::uint8_t> codes;  // (n, p)
  std::span<const double> weight;   // (n,) whole; or empty
};

struct ForestClasses {
  std::span<const std::int32_t> y;  // (n,) in 0 .. n_classes - 1
  std::int32_t n_classes;
  Criterion criterion;  // gini or entropy
};

// What the rows of nodes sum up to. Entries begin[v] .. begin[v + 1] - 1 are those of node v:
// weight by class where it is not 0, ascending; or for numbers the weight and the sum.
struct NodeSums {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> lane;
  std::vector<double> sum;
};

// Trees one behind the other; children are numbered among the nodes of all. No chains.
struct ForestColumns {
  TreeColumns nodes;
  std::vector<std::int64_t> root;  // (n_trees,)
  NodeSums sums;
};

ForestColumns grow_forest(const ForestRows& rows, const ForestSampling& sampling,
                          const ForestGrowth& growth, const ForestClasses& response);
ForestColumns grow_forest(const ForestRows& rows, const ForestSampling& sampling,
                          const ForestGrowth& growth, std::span<const double> target);

// count: (n,) how often each row was drawn for a tree.
void draw_rows(const ForestSampling& sampling, std::int64_t tree, std::span<std::int32_t> count);

}  // namespace certree
