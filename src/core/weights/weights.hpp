// Posteriors over the prunings of a tree: gains of splits, and the probability of each node to be a
// leaf of the pruning.
#pragma once

#include "counts.hpp"

namespace certree {

// A family of posteriors over prunings, one for every theta. A pruning has the weight
//   product over its leaves v of exp(s(v)), where s(v) = sum_f theta[f] F_f(v)
// for features F of the node, such as its errors. Sums of weights over all prunings below v obey
//   beta(v) = exp(stop[v]) exp(s(v)) + exp(split[v]) beta(left) beta(right),
// without the second term at leaves of the tree; stop and split come from a prior on decisions, and
// from the chain of regions that v stands for. Only the gains D_f(v) = F_f(left) + F_f(right) -
// F_f(v) are stored. Posteriors depend on nothing else, and are computed from gains without
// cancellation.
struct PosteriorFamily {
  Shape tree;
  Table<const double> gains;      // (m, n_terms), 0 at leaves
  std::span<const double> stop;   // (m,) log factor of stopping at a node; -inf: never a leaf
  std::span<const double> split;  // (m,) log factor of splitting it

  std::size_t n_terms() const { return static_cast<std::size_t>(gains.width); }
};

// Computes the gains of F = (errors, sqrt(rows), 1 [if gains has 3 columns]) from class counts and
// the label (m,) of each node; rows are in units of weight_unit, the mean weight of a row. The
// third term counts leaves; unless empty_leaves_count it counts those with rows only. gains: (m, 2
// or 3).
void error_gains(Shape tree, const Counts& counts, std::span<const std::int32_t> label,
                 double weight_unit, bool empty_leaves_count, Table<double> gains);

// Computes the same gains for a numeric target: the first term of F is the sum of squared distances
// from the node's mean, divided by `unit`. rows, mean: (m,) weight and mean of each node.
void squared_gains(Shape tree, std::span<const double> rows, std::span<const double> mean,
                   double unit, double weight_unit, bool empty_leaves_count, Table<double> gains);

// How a family predicts: by the average of all prunings, or by the single pruning of the largest
// weight.
enum class PruningMode { average, single };

// Computes the posterior of one theta.
//   theta:    (n_terms,)
//   root:     (n_terms,) F of the root, or the sum of F over all roots
//   weight:   (m,) result: probability that a node is a leaf of the pruning; 0 or 1 if single
//   log_odds: (m,) result: log odds that a node in the pruning is split; -inf at leaves
// Returns the log evidence log beta(root), or its sum over all roots; -inf if no pruning has a
// positive weight, and 0 if single.
double compute_posterior(const PosteriorFamily& family, std::span<const double> theta,
                         std::span<const double> root, PruningMode mode, std::span<double> weight,
                         std::span<double> log_odds);

// Computes the probability that each node is in the pruning, as a leaf or as an ancestor of leaves.
// reached: (m,).
void reach(Shape tree, std::span<const double> log_odds, std::span<double> reached);

// Computes, for every node, the expected sum of value (m,) over the leaves of the pruning at or
// below it, given that the node is in the pruning. sum: (m,).
void sums_below(Shape tree, std::span<const double> log_odds, std::span<const double> value,
                std::span<double> sum);

// Finds the single pruning of the largest probability. chain_mode: (m,) log probability of the
// likeliest region of the node's chain, given that the pruning stops in the chain.
// log_odds_of_pruning: (m,) +inf where that pruning splits the node, else -inf.
void likeliest(Shape tree, std::span<const double> log_odds, std::span<const double> chain_mode,
               std::span<double> log_odds_of_pruning);

}  // namespace certree
