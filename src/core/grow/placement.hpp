// Thresholds between neighbouring values of the rows that grew a tree.
#pragma once

#include "tree.hpp"

namespace certree {

// Moved thresholds and their gaps. low and high are the ends of a gap: the largest value of its
// feature that is not above the threshold, and the smallest value above it, or infinity. Where no
// threshold moves, threshold is that of the tree and low is -infinity.
struct PlacedThresholds {
  std::span<double> threshold, low, high;  // (m,) each
};

// Moves the thresholds of a tree within their gaps between values of the rows, so that no row
// changes its leaf; NaN is no value. They move as far as rounding to float32 requires or, with
// at_middle, near the middles of their gaps. Thresholds that only separate missing values, as they
// lie below or above all numbers and category codes, stay.
template <class Real>
void place_thresholds(const TreeView& tree, Table<const Real> rows, bool at_middle, int n_threads,
                      const PlacedThresholds& placed);

}  // namespace certree
