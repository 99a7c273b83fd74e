// The layout of a tree, shared by everything in the core.
//
// A tree with m nodes is a set of columns of length m.
//   feature[v]   int32    feature that node v compares (0 at leaves)
//   threshold[v] float64  a row x goes left when x[feature] <= threshold, else right; NaN goes
//   right left[v]      int32    left child, or kLeaf; the right child is left[v] + 1 chain[v] int32
//   how many nested cells with the same rows node v stands for (>= 1)
// The root is node 0, children come after their parents and siblings are adjacent. So a loop from
// m - 1 down to 0 sees children before parents, a loop from 0 up sees parents before children, and
// no pass needs recursion, a stack or parent pointers.
#pragma once

#include <cstdint>
#include <vector>

namespace certree {

inline constexpr std::int32_t kLeaf = -1;

struct TreeView {
  const std::int32_t* feature;
  const double* threshold;
  const std::int32_t* left;
  const std::uint8_t* missing_left;
  std::int32_t n_nodes;
};

// The columns of a tree that is being grown; they become NumPy arrays without a copy.
struct TreeColumns {
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> chain;
  std::vector<std::uint8_t> missing_left;
};

}  // namespace certree
