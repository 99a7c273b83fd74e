// Packed trees as arguments from Python.
#pragma once

#include "bind.hpp"
#include "ensembles/predict.hpp"

namespace certree::bindings {

// First node of each tree.
using Roots = In<std::int64_t, 1>;

// Packed nodes, as rows of two integers.
using Packed = In<std::uint64_t, 2>;
static_assert(sizeof(PackedNode) == 2 * sizeof(std::uint64_t));

// Returns a view of packed trees, checking only lengths: predictions of single rows must be fast,
// and certree.Trees has checked the values.
inline TreesView packed_trees(const Packed& packed, const In<std::int64_t, 1>& category_start,
                              const Ints& categories, const Roots& root) {
  const std::size_t m = packed.shape(0);
  TreesView trees{{}, view(root), {}, {}};
  trees.packed = {reinterpret_cast<const PackedNode*>(sized("packed", packed, m, 2).data), m};
  if (categories.size() > 0) {
    trees.nodes.category_start = sized("category_start", category_start, m + 1);
    trees.nodes.categories = view(categories);
  }
  return trees;
}

}  // namespace certree::bindings
