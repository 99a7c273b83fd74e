// Thresholds between neighbouring values of the rows that grew a tree.
#pragma once

#include "tree.hpp"

namespace certree {

// Placed thresholds and the ends of their gaps. low is the largest value of the feature that is not
// above the threshold, high the smallest value above it, or infinity. At leaves, at splits by a set
// of categories and where a threshold stays, threshold is that of the tree and low is -infinity.
struct PlacedThresholds {
  std::span<double> threshold, low, high;  // (m,) each
};

// Moves the thresholds of a tree within their gaps between values of the rows, so that no row
// changes its leaf; NaN is no value. They move as far as rounding to float32 requires or, with
// at_middle, near the middles of their gaps; near the largest value if none is above them. A
// threshold below all values stays, as does kAllLeft above them: they only separate missing values.
template <class Real>
void place_thresholds(const TreeView& tree, Table<const Real> rows, bool at_middle, int n_threads,
                      const PlacedThresholds& placed);

}  // namespace certree
