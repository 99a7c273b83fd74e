// Laws over the prunings of a tree: what its nodes are worth, and how likely each is to be a leaf.
#pragma once

#include "counts.hpp"

namespace certree {

// A family of posteriors in which every pruning weighs the product over its leaves v of
// exp(own(v)), where own(v) = sum_f theta[f] F_f(v). A node stands for a chain of cells, which
// enters as
//   beta(v) = exp(stop[v]) exp(own(v)) + exp(split[v]) beta(left) beta(right),
// without the second term at leaves. Only the gains D_f(v) = F_f(left) + F_f(right) - F_f(v) are
// stored: weights depend on nothing else, and formed from them they do not suffer from
// cancellation.
struct Terms {
  Shape tree;
  Table<const double> gains;      // (m, n_terms), zero at leaves
  std::span<const double> stop;   // (m,) may be -inf: the node is never a leaf
  std::span<const double> split;  // (m,)

  std::size_t n_terms() const { return static_cast<std::size_t>(gains.width); }
};

// gains, with terms (errors, sqrt of rows[, is a leaf]) for counts and labels (m,): (m, n_terms),
// n_terms 2 or 3. The third term is 1 for nodes with rows, or for every node.
void error_gains(Shape tree, const Counts& counts, std::span<const std::int32_t> label,
                 double weight_unit, bool empty_leaves_count, Table<double> gains);

// The same for moments (m,): the first term is the sum of squares over `unit`.
void squared_gains(Shape tree, std::span<const double> rows, std::span<const double> mean,
                   double unit, double weight_unit, bool empty_leaves_count, Table<double> gains);

enum class Rule { average, prune };

// weight:   (m,) probability that the node is a leaf of the pruning; 0 or 1 for Rule::prune
// log_odds: (m,) log odds that a reached node is split; -inf at leaves
// theta: (n_terms,). root: (n_terms,) F of the root, or of all roots together.
// Returns log beta(root), of several trees that of all of them: their sum. 0 for Rule::prune, -inf
// when no pruning has positive weight.
double weigh(const Terms& terms, std::span<const double> theta, std::span<const double> root,
             Rule rule, std::span<double> weight, std::span<double> log_odds);

// reached: (m,) probability that the node is in the pruning, as a leaf or above one.
void reach(Shape tree, std::span<const double> log_odds, std::span<double> reached);

// sum: (m,) expected sum of value over the leaves of the pruning at or below each node, given that
// the node is reached.
void sums_below(Shape tree, std::span<const double> log_odds, std::span<const double> value,
                std::span<double> sum);

// log_odds_of_pruning: (m,) +inf where the likeliest single pruning splits a node, else -inf.
// chain_mode: (m,) log probability of the likeliest cell, given a stop in the node's chain.
void likeliest(Shape tree, std::span<const double> log_odds, std::span<const double> chain_mode,
               std::span<double> log_odds_of_pruning);

}  // namespace certree
