// Functional analysis of variance of tree ensembles: how much of the variance of the prediction is
// due to single features, and to pairs of features.
//
// Features are independent, each with a distribution over a few bins. A leaf is a box: it accepts
// some bins of each feature of its path. Its indicator is the product, over these features, of q +
// (accepted - q), where accepted is 1 for accepted bins, else 0, and q is its expectation. Expanded
// and sorted by the features that vary, the products are the components of the analysis of variance
// (Efron and Stein, 1981); components of leaves add up.
#pragma once

#include "ensembles/predict.hpp"

namespace certree {

// Distributions of p features over at most C bins each. Bins of probability 0 come last.
struct FeatureBins {
  Table<const double> value;        // (C, p) a value in each bin; NaN for the bin of missing values
  Table<const double> probability;  // (C, p) of each bin; sums to 1 over the bins of a feature
};

struct Interactions {
  std::vector<std::int32_t> first, second;  // pairs of features that share a path, ascending
  std::vector<double> variance;             // of the pair's component, summed over the outputs
  double total = 0.0;                       // variance of the prediction, if wants_total
};

// Analyses the variance of the summed trees.
//   draws:       (n, p) inputs to evaluate the components at, as numbers of bins
//   wants_total: whether to compute the variance of the prediction, in time quadratic in the
//                number of leaves
//   single:      (p,) result: variance of each single feature's component, summed over the outputs
//   fitted:      (n, n_outputs) result: mean, plus components of features and pairs, at the draws
Interactions interactions(const TreesView& trees, const MissingRouting& missing,
                          const FeatureBins& bins, Table<const std::int32_t> draws,
                          bool wants_total, int n_threads, std::span<double> single,
                          Table<double> fitted);

}  // namespace certree
