// What certificates ask of a tree, and of draws in order.
#pragma once

#include "tree.hpp"

namespace certree {

// Priors over prunings with labels for their leaves, all as logs.
struct LabelledPriors {
  Table<const double> log_stop;   // (n_priors, m) that a node which is reached is a leaf
  Table<const double> log_split;  // (n_priors, m) that it is not
  Table<const double> log_label;  // (n_priors * m, n_labels) of the labels of a leaf
};

// mass: (n_priors,) log mass of all labelled prunings that label the tree's leaves like label (m,).
void log_masses(Shape tree, std::span<const std::int32_t> label, const LabelledPriors& priors,
                std::span<double> mass);

// Probability that the k-th smallest of n uniform draws lies in [lower[k], upper[k]] for all k.
// Both ascend in 0 .. 1, and lower <= upper.
double chance_in_order(std::span<const double> lower, std::span<const double> upper);

}  // namespace certree
