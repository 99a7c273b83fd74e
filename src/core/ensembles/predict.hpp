// What many trees say together.
#pragma once

#include "tree.hpp"

namespace certree {

// Trees whose nodes stand one after the other: children are numbered among all nodes.
struct TreesView {
  TreeView nodes;
  std::span<const std::int64_t> root;  // (n_trees,) first node of each tree
  Table<const double> value;           // (all nodes, n_outputs)
  std::span<const PackedNode> packed;  // (all nodes,), where they are walked many at a time
};

// total: (n_stages * n_outputs, n_rows), whose first n_outputs rows hold where the trees first,
// ..., last - 1 start from. They are added one after the other, per_stage of them in each stage,
// which goes on from the stage before.
template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, std::size_t per_stage,
               Table<const Real> X, int n_threads, Table<double> total);

// leaf: (n_trees, n_rows) number among all nodes of the leaf of each row.
template <class Real>
void find_leaves(const TreesView& trees, Table<const Real> X, int n_threads,
                 Table<std::int32_t> leaf);

// The same of rows most of whose values are 0.
template <class Real>
void add_trees(const TreesView& trees, std::size_t first, std::size_t last, std::size_t per_stage,
               const SparseRows<Real>& X, int n_threads, Table<double> total);
template <class Real>
void find_leaves(const TreesView& trees, const SparseRows<Real>& X, int n_threads,
                 Table<std::int32_t> leaf);

// part: (n_rows, n_outputs * p) of each row and output, what its values change along the paths from
// the roots by the feature that is compared there. Rows that lack values go on as in blend().
template <class Real>
void attribute(const TreesView& trees, const MissingRouting& missing, Table<const Real> X,
               int n_threads, Table<double> part);

}  // namespace certree
