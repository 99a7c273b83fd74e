// Weakest-link pruning: the price of a leaf from which on a node is not worth splitting.
//
// As a function of the price of a leaf, the cost of the best pruning below a node is concave and
// piecewise linear, with a breakpoint at every price at which a subtree collapses to a leaf. As a
// leaf, the node itself costs a constant plus one price. The price at which both are equal is found
// from the right: breakpoints above it no longer matter, as there the node is a leaf.
#pragma once

#include "prunings/prunings.hpp"

namespace certree {

// Cost and number of leaves of a pruning below a node, minus those of the node as a leaf.
struct Excess {
  double cost, leaves;
};

// At this price a subtree collapses to a leaf, which adds `cost` and removes `leaves`.
struct Breakpoint {
  double price, cost, leaves;
};

// Finds the critical price of every node. critical: (m,) +inf if it is split at any price, <= 0 if
// at none, -1 at leaves of the tree.
//
// breakpoints: a collection of the breakpoints below each node, ordered by price. join(v, l) moves
// those of the children l and l + 1 to v; then empty(v), top(v) (of the largest price), pop(v) and
// push(v, breakpoint) refer to v. visit(v, smallest) is called for each inner node when it has the
// breakpoints of its children, with the excess of the smallest pruning that splits it.
template <class Breakpoints, class Visit>
void weakest_links(Shape tree, const SplitGains& gains, Breakpoints& breakpoints,
                   const Visit& visit, std::span<double> critical) {
  // Excess of the best pruning at prices above all breakpoints; 0 unless some node is always split.
  std::vector<Excess> smallest(tree.size(), Excess{0.0, 0.0});
  for (const std::size_t v : indices_down(tree.size())) {
    critical[v] = -1.0;
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    breakpoints.join(v, l);
    Excess below{smallest[l].cost + smallest[l + 1].cost + gains.cost[v],
                 smallest[l].leaves + smallest[l + 1].leaves + gains.leaves[v]};
    visit(v, below);
    // The price at which the pruning below and the leaf cost the same.
    const auto crossing = [&] {
      if (below.leaves > 0.0) return -below.cost / below.leaves;
      return below.cost < 0.0 ? kInfinity : -kInfinity;
    };
    double price = crossing();
    while (!breakpoints.empty(v) && price < breakpoints.top(v).price) {
      count_steps(1);
      below.cost -= breakpoints.top(v).cost;
      below.leaves += breakpoints.top(v).leaves;
      breakpoints.pop(v);
      price = crossing();
    }
    critical[v] = price;
    if (price == kInfinity)
      smallest[v] = below;
    else if (price > 0.0)
      breakpoints.push(v, {price, -below.cost, below.leaves});
  }
}

}  // namespace certree
