// Weakest links: the price of a leaf from which on a node does not pay for the tree below it.
//
// As a function of the price of a leaf, the cost of the best pruning below a node is concave and
// piecewise linear; it bends where a subtree collapses. Each node meets its own line (its cost as a
// leaf plus one price) with the sum of its children's from the right: bends above the crossing are
// gone for good, as the node has collapsed there.
#pragma once

#include "prunings/prunings.hpp"

namespace certree {

// What a pruning below a node has beyond the node as a leaf.
struct Excess {
  double cost, leaves;
};

// From `price` on a subtree is a leaf: `cost` more, `leaves` fewer.
struct Bend {
  double price, cost, leaves;
};

// Finds every node's price, critical (m,): +inf if it is split at any price, not above 0 if at
// none, -1 at leaves of the tree. `bends` keeps the bends below each node, the largest price first:
// join(v, l) makes those of v of its children's, then it has empty(v), top(v), pop(v) and
// push(v, bend). visit(v, below) sees each node when its bends are those of its children, with what
// the smallest pruning that splits it has beyond it.
template <class Bends, class Visit>
void weakest_links(Shape tree, const SplitGains& gains, Bends& bends, const Visit& visit,
                   std::span<double> critical) {
  // Of the pruning that holds above the largest bend; not 0 only where nodes never collapse.
  std::vector<Excess> smallest(tree.size(), Excess{0.0, 0.0});
  for (const std::size_t v : indices_down(tree.size())) {
    critical[v] = -1.0;
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    bends.join(v, l);
    Excess below{smallest[l].cost + smallest[l + 1].cost + gains.cost[v],
                 smallest[l].leaves + smallest[l + 1].leaves + gains.leaves[v]};
    visit(v, below);
    const auto crossing = [&] {
      if (below.leaves > 0.0) return -below.cost / below.leaves;
      return below.cost < 0.0 ? kInfinity : -kInfinity;
    };
    double price = crossing();
    while (!bends.empty(v) && price < bends.top(v).price) {
      count_steps(1);
      below.cost -= bends.top(v).cost;
      below.leaves += bends.top(v).leaves;
      bends.pop(v);
      price = crossing();
    }
    critical[v] = price;
    if (price == kInfinity)
      smallest[v] = below;
    else if (price > 0.0)
      bends.push(v, {price, -below.cost, below.leaves});
  }
}

}  // namespace certree
