// The features that the path from the root to each node of a tree tests.
#pragma once

#include "ensembles/predict.hpp"
#include "parallel.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// Paths of one tree. Each vector has an entry for each node of the tree, numbered from its root.
// The edge to a node is the one from its parent, whose feature the edge tests.
struct Paths {
  std::size_t root = 0;               // number of the root among the nodes of all trees
  std::vector<std::int32_t> left;     // left child, or kLeaf
  std::vector<std::int32_t> parent;   // or -1
  std::vector<std::int32_t> feature;  // feature that the edge to the node tests
  // The node at the end of the previous edge of the path that tests the same feature, or -1.
  std::vector<std::int32_t> previous;
  std::vector<std::int32_t> n_slots;  // number of different features that the path tests
  std::vector<std::int32_t> slot;     // number of `feature` among these, by first occurrence

  std::size_t size() const { return left.size(); }
  bool is_leaf(std::size_t v) const { return left[v] == kLeaf; }

  // Writes, for each feature of the path to v by slot, the node at the end of its last edge.
  void last_nodes(std::size_t v, std::vector<std::int32_t>& nodes) const {
    nodes.assign(static_cast<std::size_t>(n_slots[v]), -1);
    for (auto u = static_cast<std::int32_t>(v); u > 0; u = parent[static_cast<std::size_t>(u)]) {
      auto& last = nodes[static_cast<std::size_t>(slot[static_cast<std::size_t>(u)])];
      if (last < 0) last = u;
    }
  }
};

Paths find_paths(const TreesView& trees, std::size_t t) {
  const auto first = static_cast<std::size_t>(trees.root[t]);
  const std::size_t last = t + 1 < trees.root.size() ? static_cast<std::size_t>(trees.root[t + 1])
                                                     : trees.nodes.left.size();
  const std::size_t m = last - first;
  Paths paths;
  paths.root = first;
  paths.left.assign(m, kLeaf);
  for (auto* column : {&paths.parent, &paths.previous}) column->assign(m, -1);
  for (auto* column : {&paths.slot, &paths.n_slots, &paths.feature}) column->assign(m, 0);
  for (const std::size_t u : indices(m, 16)) {
    if (trees.nodes.left[first + u] == kLeaf) continue;
    const std::int32_t feature = trees.nodes.feature[first + u];
    auto same = static_cast<std::int32_t>(u);
    while (same > 0 && paths.feature[static_cast<std::size_t>(same)] != feature)
      same = paths.parent[static_cast<std::size_t>(same)];
    const bool is_new = same <= 0;
    paths.left[u] = trees.nodes.left[first + u] - static_cast<std::int32_t>(first);
    for (const std::size_t child : {0, 1}) {
      const std::size_t v = static_cast<std::size_t>(paths.left[u]) + child;
      paths.parent[v] = static_cast<std::int32_t>(u);
      paths.feature[v] = feature;
      paths.previous[v] = is_new ? -1 : same;
      paths.slot[v] = is_new ? paths.n_slots[u] : paths.slot[static_cast<std::size_t>(same)];
      paths.n_slots[v] = paths.n_slots[u] + static_cast<std::int32_t>(is_new);
    }
  }
  return paths;
}

std::vector<Paths> find_all_paths(const TreesView& trees, int n_threads) {
  std::vector<Paths> paths(trees.root.size());
  parallel_for(std::ssize(paths), n_threads, [&](std::int64_t t) {
    paths[static_cast<std::size_t>(t)] = find_paths(trees, static_cast<std::size_t>(t));
  });
  return paths;
}

// Calls visit(child, fraction) for each child of node u that row x goes to: child 0 (left) or 1,
// and the fraction of the row that goes there.
template <class Real, class Router, class Visit>
CERTREE_INLINE void visit_reached_children(const TreesView& trees, const Router& router,
                                           const MissingRouting& missing, const Paths& paths,
                                           std::size_t u, const Real* x, const Visit& visit) {
  const std::size_t v = paths.root + u;
  for_each_child_reached(trees.nodes, router, missing, x, {static_cast<std::int32_t>(v), 1.0},
                         [&](const RowFraction& next) {
                           visit(static_cast<std::size_t>(next.node - trees.nodes.left[v]),
                                 next.fraction);
                         });
}

}  // namespace
}  // namespace certree
