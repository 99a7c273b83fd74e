// What the path from the root to each node of a tree knows of its features.
#pragma once

#include "ensembles/predict.hpp"
#include "parallel.hpp"
#include "walk.hpp"

namespace certree {
namespace {

// Columns of the nodes of one tree, numbered from its root.
struct Paths {
  std::size_t root = 0;              // its number among all nodes
  std::vector<std::int32_t> left;    // or kLeaf
  std::vector<std::int32_t> parent;  // or -1
  // The nearest node above whose parent compares the feature that the own parent does, or -1.
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> slot;      // place of that feature among those of the path
  std::vector<std::int32_t> n_slots;   // how many features the path compares
  std::vector<std::int32_t> compared;  // that feature

  std::size_t size() const { return left.size(); }
  bool is_leaf(std::size_t v) const { return left[v] == kLeaf; }

  // The last node of the path to v that belongs to each feature, by slot.
  void last_nodes(std::size_t v, std::vector<std::int32_t>& nodes) const {
    nodes.assign(static_cast<std::size_t>(n_slots[v]), -1);
    for (auto u = static_cast<std::int32_t>(v); u > 0; u = parent[static_cast<std::size_t>(u)]) {
      auto& last = nodes[static_cast<std::size_t>(slot[static_cast<std::size_t>(u)])];
      if (last < 0) last = u;
    }
  }
};

Paths paths_of(const TreesView& trees, std::size_t t) {
  const auto first = static_cast<std::size_t>(trees.root[t]);
  const std::size_t last = t + 1 < trees.root.size() ? static_cast<std::size_t>(trees.root[t + 1])
                                                     : trees.nodes.left.size();
  const std::size_t m = last - first;
  Paths paths;
  paths.root = first;
  paths.left.assign(m, kLeaf);
  for (auto* column : {&paths.parent, &paths.before}) column->assign(m, -1);
  for (auto* column : {&paths.slot, &paths.n_slots, &paths.compared}) column->assign(m, 0);
  for (const std::size_t u : indices(m, 16)) {
    if (trees.nodes.left[first + u] == kLeaf) continue;
    const std::int32_t feature = trees.nodes.feature[first + u];
    auto same = static_cast<std::int32_t>(u);
    while (same > 0 && paths.compared[static_cast<std::size_t>(same)] != feature)
      same = paths.parent[static_cast<std::size_t>(same)];
    const bool is_new = same <= 0;
    paths.left[u] = trees.nodes.left[first + u] - static_cast<std::int32_t>(first);
    for (const std::size_t side : {0, 1}) {
      const std::size_t v = static_cast<std::size_t>(paths.left[u]) + side;
      paths.parent[v] = static_cast<std::int32_t>(u);
      paths.compared[v] = feature;
      paths.before[v] = is_new ? -1 : same;
      paths.slot[v] = is_new ? paths.n_slots[u] : paths.slot[static_cast<std::size_t>(same)];
      paths.n_slots[v] = paths.n_slots[u] + static_cast<std::int32_t>(is_new);
    }
  }
  return paths;
}

std::vector<Paths> paths_of_all(const TreesView& trees, int n_threads) {
  std::vector<Paths> paths(trees.root.size());
  parallel_for(std::ssize(paths), n_threads, [&](std::int64_t t) {
    paths[static_cast<std::size_t>(t)] = paths_of(trees, static_cast<std::size_t>(t));
  });
  return paths;
}

// Calls say(side, part) for each child of node u that a row goes on to, 0 or 1, with the part of
// the row that does.
template <class Real, class Steps, class Say>
CERTREE_INLINE void go_from(const TreesView& trees, const Steps& steps,
                            const MissingRouting& missing, const Paths& paths, std::size_t u,
                            const Real* x, const Say& say) {
  const std::size_t v = paths.root + u;
  go_on(trees.nodes, steps, branches, x, {static_cast<std::int32_t>(v), 1.0},
        [&](const RowFraction& next) {
          say(static_cast<std::size_t>(next.node - trees.nodes.left[v]), next.part);
        });
}

}  // namespace
}  // namespace certree
