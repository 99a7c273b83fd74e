// Computations of certificates: prior masses of classifiers, and probabilities of order statistics.
#pragma once

#include "tree.hpp"

namespace certree {

// Priors over prunings whose leaves have labels, as logs of probabilities.
struct LabelledPriors {
  Table<const double> log_stop;   // (n_priors, m) that a node in the pruning is a leaf
  Table<const double> log_split;  // (n_priors, m) that it is split
  Table<const double> log_label;  // (n_priors * m, n_labels) of each label of a leaf
};

// Computes the prior mass of a classifier, given by the label (m,) of each leaf of the tree: the
// summed prior probability of all labelled prunings that label every point alike. mass: (n_priors,)
// logs of the masses.
void log_masses(Shape tree, std::span<const std::int32_t> label, const LabelledPriors& priors,
                std::span<double> mass);

// Returns the probability that the k-th smallest of n independent uniform draws from [0, 1] lies in
// [lower[k], upper[k]] for all k. lower and upper: (n,), ascending in [0, 1].
double order_statistics_probability(std::span<const double> lower, std::span<const double> upper);

}  // namespace certree
