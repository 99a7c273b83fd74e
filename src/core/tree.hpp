// The layout of a tree, shared by everything in the core.
//
// A tree with m nodes is a set of columns of length m.
//   feature[v]      int32    feature that node v compares (0 at leaves)
//   threshold[v]    float64  a row x goes left when x[feature] <= threshold, else right
//   left[v]         int32    left child, or kLeaf; the right child is left[v] + 1
//   chain[v]        int32    how many nested cells with the same rows node v stands for (>= 1)
//   missing_left[v] uint8    whether NaN goes left
// A node may compare categories instead, 0, 1, ... as floats: those of its set go to the side
// opposite to missing_left[v], all other values go where NaN goes. The set of node v is, ascending,
// categories[category_start[v]], ..., categories[category_start[v + 1] - 1]; an empty one means
// that the node compares with its threshold.
// Trees stand one after the other. The root of each is its first node, children come after their
// parents and siblings are adjacent. So a loop from m - 1 down to 0 sees children before parents, a
// loop from 0 up sees parents before children, and no pass needs recursion, a stack or parent
// pointers.
#pragma once

#include "sparse_rows.hpp"

namespace certree {

inline constexpr std::int32_t kLeaf = -1;

// Which nodes have children, and where: all that a pass over the nodes has to know of a tree.
struct Shape {
  std::span<const std::int32_t> children;  // the column `left`

  std::size_t size() const { return children.size(); }
  bool is_leaf(std::size_t v) const { return children[v] == kLeaf; }
  std::size_t left(std::size_t v) const { return static_cast<std::size_t>(children[v]); }
};

// Tells roots apart in a loop over all nodes from 0 up: a tree ends with the last child in it.
class Roots {
 public:
  explicit Roots(Shape tree) : tree_(tree) {}

  // Has to be asked of every node.
  bool has(std::size_t v) {
    const bool is_root = v >= end_;
    end_ = std::max(end_, tree_.is_leaf(v) ? v + 1 : tree_.left(v) + 2);
    return is_root;
  }

 private:
  Shape tree_;
  std::size_t end_ = 0;
};

// What a row that walks down a tree has to know of it.
struct TreeView {
  std::span<const std::int32_t> feature;
  std::span<const double> threshold;
  std::span<const std::int32_t> left;
  std::span<const std::uint8_t> missing_left;
  std::span<const std::int64_t> category_start;  // (m + 1,), or empty: no node compares categories
  std::span<const std::int32_t> categories;
};

// What a step of many walks reads, in one piece of memory. A leaf leads to itself, so that walks go
// on side by side until all have arrived.
struct PackedNode {
  std::uint64_t bits;      // of the threshold; or one for each category of the set, 0: look it up
  std::uint32_t compared;  // twice the feature, and one more where NaN goes left
  std::int32_t left;       // its complement where a set is compared
};

// packed: (m,)
void pack(const TreeView& tree, std::span<PackedNode> packed);

// The columns of a tree that is being grown; they become NumPy arrays without a copy.
struct TreeColumns {
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> chain;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::int64_t> category_start;  // empty: no node compares categories
  std::vector<std::int32_t> categories;
  bool heuristic = false;  // whether some split may not be the best of its cell
};

// Puts a tree behind others, as one of them: its children are numbered among the nodes of all. Its
// chains are left out, and the end of its last set, which finish_columns() writes once for all.
void append(const TreeColumns& tree, TreeColumns& all);
void finish_columns(TreeColumns& all);

// leaf: int32 (n_rows,) the leaf that each row reaches.
template <class Real>
void apply(const TreeView& tree, Table<const Real> X, int n_threads, std::span<std::int32_t> leaf);

template <class Real>
void apply(const TreeView& tree, const SparseRows<Real>& X, int n_threads,
           std::span<std::int32_t> leaf);

// How rows that lack a value are sent on.
struct MissingRouting {
  // (m,) whether they go both ways where they lack the value; empty: nowhere
  std::span<const std::uint8_t> both;
  std::span<const double> rows;  // (m,) rows by which the children share them
};

// out: (n_rows, K) the scores of the leaves that each row reaches, by the parts of it that do.
// score: (m, K).
template <class Real>
void blend(const TreeView& tree, const MissingRouting& missing, Table<const Real> X,
           Table<const double> score, int n_threads, Table<double> out);

// lacks: uint8 (m,) whether a row that reaches a node has NaN in the feature it compares.
template <class Real>
void mark_lacking(const TreeView& tree, Table<const Real> X, std::span<std::uint8_t> lacks);

// depth: int64 (m,) number of cells above the first cell of each node's chain.
void depths(Shape tree, std::span<const std::int32_t> chain, std::span<std::int64_t> depth);

}  // namespace certree
