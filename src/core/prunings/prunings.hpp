// Prunings that are optimal for a penalty, and nested paths of prunings.
#pragma once

#include "tree.hpp"

namespace certree {

// What splitting each node adds: (m,), 0 at leaves.
struct SplitGains {
  std::span<const double> cost;
  std::span<const double> leaves;
};

// critical[v]: the smallest price of a leaf at which v is not split in the optimal pruning, +inf if
// it always is, 0 if it never is; -1 at leaves of the tree. Non-increasing from parent to child.
void critical_prices(Shape tree, const SplitGains& gains, std::span<double> critical);

// A pruning pays its cost, and for each leaf v of some root fragment of it
//   size_penalty[v] sqrt(its leaves in v) + cell_penalty[v].
struct FragmentPenalty {
  SplitGains gains;
  std::span<const double> chain_leaves;  // (m,) how many of the leaves lie beside the node's chain
  std::span<const double> size_penalty;  // (m,)
  std::span<const double> cell_penalty;  // (m,)
};

enum class Division : std::uint8_t { none, pruning, fragment };

// division: Division (m,), whether the pruning that pays least divides a node, and whether its
// cheapest root fragment does. The leaves beside a chain hold no rows, so that a fragment goes
// through it for free.
void fragment_pruning(Shape tree, const FragmentPenalty& penalty, std::span<Division> division);

// step: (m,) number of the merge that makes the node a leaf, -1 at leaves of the tree. Sibling
// leaves merge one pair at a time, always those below the node v with the smallest rise[v], of
// equal ones the lowest v.
void merge_order(Shape tree, std::span<const double> rise, std::span<std::int32_t> step);

}  // namespace certree
