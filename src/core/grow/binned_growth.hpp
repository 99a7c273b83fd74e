// Growth from sums over bins: sums of whole numbers decide how a node is split; rows are only added
// up. A tree depends neither on the order of rows, given those that are drawn, nor on the number of
// threads.
#pragma once

#include "grow/binned.hpp"
#include "grow/feature_order.hpp"
#include "ranks.hpp"

namespace certree {

// Which leaf is split next: that whose split gains most, that which was made first (breadth first),
// or that which was made last, the left one of two (depth first).
enum class Order { best, breadth, depth };

// Which splits are compared, and which of them are made.
struct BinnedGrowth {
  std::int64_t max_leaves;
  std::int32_t max_depth;
  std::int64_t min_split;  // growing rows of a node that is split
  std::int64_t min_rows;   // in either child of a split
  double min_gain;         // of a split; for classes and numbers as a fraction of the tree's weight
  Order order;
  std::int64_t max_features;  // that vary are drawn in a node; 0: all, in the order below
  bool random_splits;         // one random split of each feature instead of all
  bool ties_by_root;  // equal splits: that by the feature whose best split of the root is better
  std::span<const std::int8_t> monotonic;  // (p,) 1: rising, -1: falling, 0: free; or empty
  Table<const std::uint8_t> groups;        // (k, p) features that may act together; or no rows
  int n_threads;
  FeatureOrder feature_order{};  // in which order features are compared, and drawn of
  Ranks* ranks = nullptr;        // that grow a tree on gradients together; null: one process
};

// -- one tree on gradients and Hessians

// Which rows do what; all are numbers of rows of the table.
struct SentRows {
  std::span<const std::int32_t> growing;  // a row that is given twice counts twice
  std::span<const std::int32_t> others;   // are sent along, without influence
};

// What rows count as, drawn by keys: made where it is asked for, as it would take much memory.
struct RowFactors {
  std::span<const std::uint64_t> keys;  // (n,), or empty: each counts once
  std::uint64_t odd = 1;                // deals keys anew
  std::span<const double> among;        // (256,)

  double operator[](std::size_t i) const { return keys.empty() ? 1.0 : among[keys[i] * odd >> 56]; }
};

struct Derivatives {
  std::span<const double> gradient, hessian;  // (n,)
  double l2;                                  // added to sums of Hessians
  double min_hessian;                         // sum of Hessians in either child
  RowFactors factors{};                       // of both, of each row
};

// The largest absolute values of the gradients and Hessians of growing rows, and how many rows
// these are; infinite where one of them is not finite, or a Hessian is negative.
struct LargestDerivatives {
  double gradient, hessian;
  std::int64_t n_rows;
};
LargestDerivatives largest_derivatives(const Derivatives& response,
                                       std::span<const std::int32_t> growing);

struct BinnedTree {
  TreeColumns columns;
  std::vector<double> sums;  // (m, 3) of growing rows: gradients, Hessians, number
};

// Memory that one tree after the other uses.
class GrowthMemory {
 public:
  struct Arrays;

  GrowthMemory();
  ~GrowthMemory();
  GrowthMemory(const GrowthMemory&) = delete;
  GrowthMemory& operator=(const GrowthMemory&) = delete;
  Arrays& arrays() { return *arrays_; }

 private:
  std::unique_ptr<Arrays> arrays_;
};

// Returns the stored values of a sparse table row by row; nothing for a dense table. Trees on the
// same table share them, as listing them takes longer than growing a small tree.
PlacesByRow list_places(const BinnedTable& table);

// largest: of the growing rows of all ranks. features: those that the tree may compare, ascending;
// leaf: (n,) of the rows that are given; others stay as they are. Throws std::invalid_argument if
// `largest` is not finite.
BinnedTree grow_gradients(const BinnedTable& table, const SentRows& rows,
                          const LargestDerivatives& largest, std::span<const std::int32_t> features,
                          const BinnedGrowth& growth, const Derivatives& response,
                          GrowthMemory& memory, std::span<std::int32_t> leaf);

// -- many trees on classes or numbers, each on rows of its own that are drawn

// How many times each row grows a tree.
enum class Sampling {
  all,      // once
  some,     // so many of the rows once
  repeated  // so many draws, each among all rows
};

// With groups whole groups are drawn, and all rows of a group as often as it is.
struct Drawing {
  Sampling kind;
  std::int64_t n_draws;
  std::uint64_t seed;
  std::span<const std::int32_t> group{};  // (n,) number of each row's group; or empty
  std::int64_t n_groups = 0;
  std::int64_t most_rows = n_draws;  // of a tree, a row counted as often as it is drawn
};

struct Bags {
  Drawing drawing;
  std::int64_t first, n_trees;        // numbers of the trees
  std::int64_t max_features_of_tree;  // drawn once for a tree
  bool is_balanced = false;           // classes have the same weight among the rows of each tree
};

// What StoredCodes holds, row by row.
struct StoredByRow {
  std::span<const std::int64_t> start;    // (n + 1,) where those of each row start
  std::span<const std::int32_t> feature;  // ascending within a row
  std::span<const std::uint8_t> code;
  std::span<const std::uint8_t> zero;  // (p,) code of 0
};

// Rows by the order in which they are drawn.
struct DrawnRows {
  KeptBins bins;
  Table<const std::uint8_t> codes;  // (n, p)
  StoredByRow stored;               // or these, if they are some
  std::span<const double> weight;   // (n,) if no integers, rows are drawn once at most; or empty

  bool is_sparse() const { return !stored.start.empty(); }
  std::int64_t n_rows() const { return is_sparse() ? std::ssize(stored.start) - 1 : codes.n_rows; }
};

struct Classes {
  std::span<const std::int32_t> y;  // (n,) in 0 .. n_classes - 1
  std::int32_t n_classes;
  Criterion criterion;  // gini or entropy
};

struct Numbers {
  std::span<const double> y;  // (n,)
  Criterion criterion;        // squared, or poisson of numbers that are not negative
};

// Several targets of each row, in columns, of which a tree serves all: numbers, or classes.
struct Columns {
  Table<const double> y;                    // (n, q) numbers, or classes 0, 1, ...
  std::span<const std::int32_t> n_classes;  // (q,) or empty: numbers
  std::span<const double> factor;           // (q,) factor of the impurity of each
  Criterion criterion;                      // squared; gini or entropy, whose factors are equal
};

// What the rows of nodes sum up to. Entries begin[v] .. begin[v + 1] - 1 are those of node v:
// weight by class where it is not 0, ascending; or for numbers the weight and the sum; of several
// columns the weight and all sums, without lanes.
struct NodeSums {
  std::vector<std::int64_t> begin;
  std::vector<std::int32_t> lane;
  std::vector<double> sum;

  // To the node that comes last; units of a power of two.
  void put(std::int32_t where, std::int64_t whole, int exponent) {
    lane.push_back(where);
    const auto number = static_cast<double>(whole);
    sum.push_back(exponent == 0 ? number : std::ldexp(number, exponent));
  }
};

// Trees one behind the other; children are numbered among the nodes of all. No chains.
struct BinnedTrees {
  TreeColumns nodes;
  std::vector<std::int64_t> root;  // (n_trees,)
  NodeSums sums;
};

// Weights as integers are at most so large.
inline constexpr double kMostWhole = 0x1p16;

// What decides the integers that weights become.
struct WeightUnit {
  double largest;
  double common;  // all weights are multiples of it, but for rounding; 0: none is large enough
};
WeightUnit unit_of_weights(std::span<const double> weight);

// Positive weights as integers: multiples of their common unit, or rounded ones, 1 at least, of
// which the largest is 2^16. Weights times a constant become the same integers.
void whole_weights(std::span<const double> weight, const WeightUnit& of_all,
                   std::span<double> whole);

// Puts trees one behind the other, and writes the ends of their columns.
BinnedTrees joined(std::vector<BinnedTrees>&& parts);

BinnedTrees grow_bags(const DrawnRows& rows, const Bags& bags, const BinnedGrowth& growth,
                      const Classes& response);
BinnedTrees grow_bags(const DrawnRows& rows, const Bags& bags, const BinnedGrowth& growth,
                      const Numbers& response);
BinnedTrees grow_bags(const DrawnRows& rows, const Bags& bags, const BinnedGrowth& growth,
                      const Columns& response);

// count: (n,) how often each row was drawn for a tree.
void draw_rows(const Drawing& drawing, std::int64_t tree, std::span<std::int32_t> count);

}  // namespace certree
