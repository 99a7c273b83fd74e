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
  const std::int64_t* category_start;  // (n_nodes + 1,), or null: no node compares categories
  const std::int32_t* categories;
};

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

}  // namespace certree
