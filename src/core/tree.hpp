// The layout of a tree, shared by the whole core.
//
// A tree with m nodes is a set of columns of length m.
//   feature[v]      int32    feature that node v tests (0 at leaves)
//   threshold[v]    float64  a row x goes left if x[feature] <= threshold, else right
//   left[v]         int32    left child, or kLeaf; the right child is left[v] + 1
//   chain[v]        int32    number (>= 1) of nested regions with the same rows that v stands for
//   default_left[v] uint8    sum of kMissingLeft, if NaN goes left, and kUnseenLeft (see below)
// A node may test for a set of categories instead, which are stored as the numbers 0, 1, .... An
// unseen category is one that no training row of the node has. The set contains the categories that
// go to the other child than unseen ones. All values outside of the set, but for NaN, go left if
// default_left has kUnseenLeft, else right. The set of node v is categories[category_start[v]],
// ..., categories[category_start[v + 1] - 1], ascending. A node whose set is empty compares with
// its threshold, also if its feature is categorical: it then only separates NaN from all
// categories.
//
// The nodes of several trees are stored one tree after the other. The root of each tree is its
// first node, children come after their parents, and siblings are adjacent. So a loop from m - 1
// down to 0 visits children before parents, a loop from 0 up visits parents before children, and no
// pass needs recursion, a stack or parent pointers.
#pragma once

#include "sparse_rows.hpp"

namespace certree {

inline constexpr std::int32_t kLeaf = -1;

// The bits of default_left.
inline constexpr std::uint8_t kMissingLeft = 1;
inline constexpr std::uint8_t kUnseenLeft = 2;

// Thresholds that send all categories to one child, also -1, which stands for a category that the
// fit does not know.
inline constexpr double kAllLeft = std::numeric_limits<double>::max();
inline constexpr double kAllRight = -2.0;

// The shape of a tree, or of several: which nodes have children, and where. Passes over the nodes
// that do not route rows need no other column.
struct Shape {
  std::span<const std::int32_t> children;  // (m,) the column `left`

  std::size_t size() const { return children.size(); }
  bool is_leaf(std::size_t v) const { return children[v] == kLeaf; }
  std::size_t left(std::size_t v) const { return static_cast<std::size_t>(children[v]); }
};

// Finds the roots of several trees in a loop over all nodes from 0 up: a node is a root if no node
// before it has it as a child.
class RootFinder {
 public:
  explicit RootFinder(Shape tree) : tree_(tree) {}

  // Returns whether v is a root. Must be called once for every node, in ascending order.
  bool is_root(std::size_t v) {
    const bool is_first = v >= end_;
    end_ = std::max(end_, tree_.is_leaf(v) ? v + 1 : tree_.left(v) + 2);
    return is_first;
  }

 private:
  Shape tree_;
  std::size_t end_ = 0;  // behind the last child so far
};

// The columns that are needed to route rows to leaves.
struct TreeView {
  std::span<const std::int32_t> feature;
  std::span<const double> threshold;
  std::span<const std::int32_t> left;
  std::span<const std::uint8_t> default_left;
  std::span<const std::int64_t> category_start;  // (m + 1,), or empty: no node has a set
  std::span<const std::int32_t> categories;

  // Returns whether node v tests for a set of categories, and not by its threshold.
  bool has_set(std::size_t v) const {
    return !category_start.empty() && category_start[v] < category_start[v + 1];
  }
};

// The test of a node in 16 bytes, for walks of many rows. The children of a leaf are the leaf
// itself, so that rows can take further steps until all of them have arrived.
struct PackedNode {
  // The threshold's bits; or the set as a mask of bits 0, ..., 62. They are all 0 if the set has a
  // category above 62 and must be read from `categories`. Bit 63 of a mask is 1 if unseen
  // categories go left.
  std::uint64_t threshold_or_set;
  std::uint32_t feature_and_missing;  // 2 * feature + 1 if NaN goes left
  std::int32_t left;                  // left child; its complement if the node tests for a set
};

// Packs the nodes of trees. packed: (m,).
void pack(const TreeView& tree, std::span<PackedNode> packed);

// The columns of a tree that is being grown. They become NumPy arrays without a copy.
struct TreeColumns {
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> chain;
  std::vector<std::uint8_t> default_left;
  std::vector<std::int64_t> category_start;  // empty: no node has a set
  std::vector<std::int32_t> categories;
  bool heuristic = false;  // whether some split may not be the best of its node
};

// Appends the columns of a tree, but for `chain`, to those of several trees, and renumbers its
// children. Throws std::invalid_argument if there would be more than 2^31 - 1 nodes. After the last
// tree the caller calls finish_columns(), which writes the end of the last set.
void append(const TreeColumns& tree, TreeColumns& all);
void finish_columns(TreeColumns& all);

// Routes the rows of X to leaves. leaf: (n_rows,) the leaf that each row reaches.
template <class Real>
void apply(const TreeView& tree, Table<const Real> X, int n_threads, std::span<std::int32_t> leaf);

template <class Real>
void apply(const TreeView& tree, const SparseRows<Real>& X, int n_threads,
           std::span<std::int32_t> leaf);

// How rows whose value is missing are routed. At the nodes in `both_ways` such a row goes to both
// children, in fractions proportional to the node_weight of the children; at the others it follows
// default_left.
struct MissingRouting {
  std::span<const std::uint8_t> both_ways;  // (m,), or empty: at no node
  std::span<const double> node_weight;      // (m,) weight of the training rows in each node
};

// Averages the scores of the leaves that each row reaches, weighted by the fractions of the row
// that reach them. score: (m, K); out: (n_rows, K).
template <class Real>
void blend(const TreeView& tree, const MissingRouting& missing, Table<const Real> X,
           Table<const double> score, int n_threads, Table<double> out);

// Finds nodes that rows reach with a missing value in the feature that the node tests.
// lacks: (m,) 1 for these nodes, else 0.
template <class Real>
void mark_lacking(const TreeView& tree, Table<const Real> X, std::span<std::uint8_t> lacks);

// Computes depths. depth: (m,) number of regions above the first region of each node's chain, the
// sum of chain over its ancestors; 0 at roots.
void depths(Shape tree, std::span<const std::int32_t> chain, std::span<std::int64_t> depth);

}  // namespace certree
