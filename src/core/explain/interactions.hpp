// How much of the variance of what trees say is due to single features, and to pairs of them.
//
// Features are independent, each with the values of a few cells. A leaf is a box: it accepts some
// cells of each feature of its path, with probability q together, so that its indicator is a
// product of q + (accepted - q). Sorted by which features vary, those products are the parts of the
// analysis of variance (Efron and Stein, 1981), each summed over the leaves.
#pragma once

#include "ensembles/predict.hpp"

namespace certree {

// Cells of all features, C of each at most. Cells of mass 0 stand last.
struct Cells {
  Table<const double> value;  // (C, p) a value that stands for all in a cell, NaN for missing ones
  Table<const double> mass;   // (C, p) probability of each cell; a feature's sum to 1
};

struct Interactions {
  std::vector<std::int32_t> first, second;  // pairs of features that share a path, ascending
  std::vector<double> variance;             // due to the pair beyond that of either feature
  double total = 0.0;                       // variance of everything, where it was asked for
};

// single: (p,) the variance that is due to each feature alone, summed over the outputs.
// draws: (n, p) cells; fitted: (n, n_outputs) what is said there without parts of higher orders.
// The whole variance costs the square of the number of leaves.
Interactions interactions(const TreesView& trees, const MissingRouting& missing, const Cells& cells,
                          Table<const std::int32_t> draws, bool wants_total, int n_threads,
                          std::span<double> single, Table<double> fitted);

}  // namespace certree
