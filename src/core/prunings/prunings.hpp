// Prunings that are optimal for a penalty, and nested paths of prunings. m is the number of nodes.
#pragma once

#include "tree.hpp"

namespace certree {

// By how much splitting each node changes the cost (usually it falls) and the number of leaves.
struct SplitGains {
  std::span<const double> cost;    // (m,), 0 at leaves
  std::span<const double> leaves;  // (m,), 0 at leaves
};

// Computes the path of cost-complexity pruning. critical: (m,) the smallest price of a leaf (alpha)
// at which the optimal pruning does not split a node; +inf if it always does, 0 if it never does,
// -1 at leaves of the tree. No child has a larger value than its parent.
void critical_prices(Shape tree, const SplitGains& gains, std::span<double> critical);

// The penalty of a pruning by a root fragment: a subtree at the root, contained in the pruning. A
// pruning pays its cost and, for every leaf v of its cheapest root fragment,
//   size_penalty[v] sqrt(number of leaves of the pruning in v) + node_penalty[v].
struct FragmentPenalty {
  SplitGains gains;
  std::span<const double> chain_leaves;  // (m,) leaves without rows that a split adds beside the
                                         // chain of regions that the node stands for
  std::span<const double> size_penalty;  // (m,)
  std::span<const double> node_penalty;  // (m,)
};

// What splits a node: neither, the pruning alone, or the pruning and its root fragment.
enum class Division : std::uint8_t { none, pruning, fragment };

// Finds the pruning with the smallest cost plus penalty. division: (m,) whether the pruning, and
// its cheapest root fragment, split each node. The leaves beside a chain hold no rows, so a
// fragment may pass through a chain without paying for them.
void fragment_pruning(Shape tree, const FragmentPenalty& penalty, std::span<Division> division);

// Computes a path that merges one pair of sibling leaves at a time: always those with the parent v
// of the smallest rise[v], on ties of the smallest v. step: (m,) number of the merge that makes a
// node a leaf; -1 at leaves of the tree.
void merge_order(Shape tree, std::span<const double> rise, std::span<std::int32_t> step);

}  // namespace certree
