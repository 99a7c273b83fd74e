// What the core offers, in the order of the flow: rows -> tree -> stats -> weights -> vote.
#pragma once

#include <cstdint>
#include <vector>

#include "grow.hpp"
#include "tree.hpp"

namespace certree {

// -- growing
// ---------------------------------------------------------------------------------------

// X is (n_rows, n_features), C order, float or double.
template <class Real>
struct Matrix {
  const Real* data;
  std::int64_t n_rows;
  std::int64_t n_features;
  const Real* row(std::int64_t i) const { return data + i * n_features; }
};

template <class Real>
TreeColumns grow_dyadic(const Matrix<Real>& X, const Stopping& stopping, bool expand,
                        int n_threads);

enum class Axis { cycle, spread };

template <class Real>
TreeColumns grow_kd(const Matrix<Real>& X, const Stopping& stopping, Axis axis, int n_threads);

// What a greedy split maximises the decrease of.
enum class Criterion { gini, entropy, misclassification, squared };

// Classes y in 0 .. n_classes - 1, or, for Criterion::squared, numbers target.
struct Response {
  Criterion criterion;
  const std::int32_t* y;
  std::int32_t n_classes;
  const double* target;
};

// A row in a feature's list; equal values have equal ranks, missing ones the largest of all.
struct RankedRow {
  std::uint32_t rank;
  std::uint32_t row;
};

// order: (number of features of numbers, n_rows), the rows in the order of each one's values;
// category: (n_features,) whether a feature holds categories, or null.
template <class Real>
void rank_rows(const Matrix<Real>& X, const std::uint8_t* category, RankedRow* order,
               int n_threads);

// Rows ranked beforehand, of which a tree grows on some. Without an order the grower ranks its own.
struct Ranked {
  const RankedRow* order = nullptr;  // (number of features of numbers, n_rows)
  std::int64_t n_rows = 0;
  const std::int32_t* place = nullptr;  // (n_rows,) ascending, -1: not among the grower's rows
};

// Which cuts a greedy grower looks at, and which of them it makes.
struct Greedy {
  double min_gain;  // a cut whose decrease, rows times impurity (nats), is below is not made
  std::int64_t max_leaves;       // 0: no limit; else the best leaf is divided first
  std::int64_t max_features;     // non-constant features that are looked at in a cell, drawn
  bool random_cuts;              // one random cut of each feature instead of all
  std::uint64_t key;             // decides what is drawn
  const std::uint8_t* category;  // (p,) whether a feature holds categories; null: none does
  const std::int8_t* monotonic;  // (p,) sign of the response's slope, 0 for any; null: all 0
};

template <class Real>
TreeColumns grow_cart(const Matrix<Real>& X, const Ranked& ranked, const Response& response,
                      const Stopping& stopping, const Greedy& greedy, int n_threads);

// -- routing and counting
// --------------------------------------------------------------------------

// leaf: int32 (n_rows,) the leaf that each row reaches.
template <class Real>
void apply(const TreeView& tree, const Matrix<Real>& X, std::int32_t* leaf, int n_threads);

// counts: float64 (n_nodes, n_classes), weight of the rows of each class in each node; must be
// zero.
void count(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* leaf,
           const std::int32_t* y, const double* weight, std::int64_t n_rows, std::int64_t n_classes,
           double* counts);

// rows, mean, squares: float64 (n_nodes,) weight of the rows in each node, mean of their targets
// and weighted sum of squared distances from it; a node without rows has its parent's mean.
void moments(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* leaf,
             const double* target, const double* weight, std::int64_t n_rows, double* rows,
             double* mean, double* squares);

// label: int32 (n_nodes,) the class with the largest count, ties to the lowest; a node without rows
// has its parent's, a root without rows has class 0.
void majority(const std::int32_t* left, std::int32_t n_nodes, const double* counts,
              std::int64_t n_classes, std::int32_t* label);

// frequency: float64 (n_nodes, n_classes), shares of the classes among the rows of a node and
// `smoothing` more that are like its parent's shares; the root's parent has uniform ones. So a node
// without rows has its parent's.
void frequencies(const std::int32_t* left, std::int32_t n_nodes, const double* counts,
                 std::int64_t n_classes, double smoothing, double* frequency);

// value: float64 (n_nodes,) mean over the rows of a node and `smoothing` more that are like its
// parent's value.
void smoothed_means(const std::int32_t* left, std::int32_t n_nodes, const double* rows,
                    const double* mean, double smoothing, double* value);

// Moves the values of nodes, value float64 (n_nodes,), as little as it takes for the values of
// every pruning's leaves to rise (slope 1) or fall (slope -1) along each feature: slope int8 (p,).
// The middle between two children bounds all values below them.
void make_monotone(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* feature,
                   const std::int8_t* slope, double* value);

// depth: int64 (n_nodes,) number of cells above the first cell of each node's chain.
void depths(const std::int32_t* left, const std::int32_t* chain, std::int32_t n_nodes,
            std::int64_t* depth);

// -- laws over prunings
// ----------------------------------------------------------------------------

// A family of laws in which every pruning weighs the product over its leaves v of exp(own(v)),
// where own(v) = sum_f theta[f] F_f(v). A node stands for a chain of cells, which enters as
//   beta(v) = exp(stop[v]) exp(own(v)) + exp(split[v]) beta(left) beta(right),
// without the second term at leaves. Only the gains D_f(v) = F_f(left) + F_f(right) - F_f(v) are
// stored: weights depend on nothing else, and formed from them they do not suffer from
// cancellation.
struct Terms {
  const std::int32_t* left;
  std::int32_t n_nodes;
  std::int32_t n_terms;
  const double* gains;  // (n_nodes, n_terms), zero at leaves
  const double* stop;   // (n_nodes,) may be -inf: the node is never a leaf
  const double* split;  // (n_nodes,)
};

// gains, with terms (errors, sqrt of rows[, is a leaf]) for counts (n_nodes, n_classes) and labels:
// (n_nodes, n_terms), n_terms 2 or 3. The third term is 1 for nodes with rows, or for every node.
void error_gains(const std::int32_t* left, std::int32_t n_nodes, const double* counts,
                 const std::int32_t* label, std::int64_t n_classes, std::int64_t n_terms,
                 bool empty_leaves_count, double* gains);

// The same for moments (n_nodes,): the first term is the sum of squares over `unit`.
void squared_gains(const std::int32_t* left, std::int32_t n_nodes, const double* rows,
                   const double* mean, double unit, std::int64_t n_terms, bool empty_leaves_count,
                   double* gains);

enum class Rule { average, prune };

// weight:   (n_nodes,) probability that the node is a leaf of the pruning; 0 or 1 for Rule::prune
// log_odds: (n_nodes,) log odds that a reached node is split; -inf at leaves
// root: (n_terms,) F of the root.
// Returns log beta(root); 0 for Rule::prune, -inf when no pruning has positive weight.
double weigh(const Terms& terms, const double* theta, const double* root, Rule rule, double* weight,
             double* log_odds);

// reached: (n_nodes,) probability that the node is in the pruning, as a leaf or above one.
void reach(const std::int32_t* left, std::int32_t n_nodes, const double* log_odds, double* reached);

// sum: (n_nodes,) expected sum of value over the leaves of the pruning at or below each node, given
// that the node is reached.
void sums_below(const std::int32_t* left, std::int32_t n_nodes, const double* log_odds,
                const double* value, double* sum);

// Priors over prunings with labels for their leaves, all as logs.
struct LabelledPriors {
  const double* log_stop;   // (n_priors, n_nodes) that a node which is reached is a leaf
  const double* log_split;  // (n_priors, n_nodes) that it is not
  const double* log_label;  // (n_priors, n_nodes, n_labels) of the labels of a leaf
  std::int64_t n_priors;
};

// mass: (n_priors,) log mass of all labelled prunings that label the tree's leaves like label.
void log_masses(const std::int32_t* left, std::int32_t n_nodes, const std::int32_t* label,
                std::int64_t n_labels, const LabelledPriors& priors, double* mass);

// log_odds_of_pruning: (n_nodes,) +inf where the likeliest single pruning splits a node, else -inf.
// chain_mode: (n_nodes,) log probability of the likeliest cell, given a stop in the node's chain.
void likeliest(const std::int32_t* left, std::int32_t n_nodes, const double* log_odds,
               const double* chain_mode, double* log_odds_of_pruning);

// score: (n_nodes, n_classes), path sums of weight[v] * value(v, k), where value is the one-hot
// label or, when frequency is not null, that row of frequency (n_nodes, n_classes); label may be
// null then. Numbers have one "class", whose frequency is the mean.
void push_down(const std::int32_t* left, std::int32_t n_nodes, const double* weight,
               const std::int32_t* label, const double* frequency, std::int64_t n_classes,
               double* score);

enum class Loss { error, log_loss, squared };

// Laws of one family: theta is (n, n_terms).
struct Grid {
  const double* theta;
  std::int64_t n;
  Rule rule;
};

// What nodes vote for: the rows of frequency (n_nodes, n_classes), which sum to 1, or, if it is
// null, labels. Numbers have one "class", whose frequency is the mean.
struct Values {
  const std::int32_t* label;
  const double* frequency;
  std::int64_t n_classes;
  double operator()(std::int64_t v, std::int64_t k) const {
    return frequency ? frequency[v * n_classes + k] : static_cast<double>(label[v] == k);
  }
};

// loss[g]: summed loss of the vote under each law on held-out rows, whose weights by node and class
// are holdout (n_nodes, n_classes), as count() sums them, or (rows, mean, squares) by node, as
// moments() does, for the squared loss.
void score_grid(const Terms& terms, const Grid& grid, const Values& values, const double* holdout,
                Loss kind, double* loss, int n_threads);

// The vote's share of the right class. Held-out rows that reach the same leaf and are of the same
// class are one row here; rows: (n,) their weight, share: (n, n_grid), at least the rounding unit.
struct HeldOutShares {
  std::vector<double> rows;
  std::vector<double> share;
};

HeldOutShares held_out_shares(const Terms& terms, const Grid& grid, const Values& values,
                              const double* holdout, int n_threads);

// proportion: (n_laws,) of laws in a mixture, from equal ones by so many steps of the EM algorithm,
// each of which lowers the log loss of the mixture on held-out rows. Returns that loss.
double mix(const double* rows, const double* share, std::int64_t n_rows, std::int64_t n_laws,
           std::int64_t n_steps, double* proportion);

// critical[v]: the smallest price of a leaf at which v is not split in the optimal pruning, +inf if
// it always is, 0 if it never is; -1 at leaves of the tree. Non-increasing from parent to child.
// cost_gain, leaf_gain: (n_nodes,) by how much splitting a node raises costs and leaves; 0 at
// leaves.
void critical_prices(const std::int32_t* left, std::int32_t n_nodes, const double* cost_gain,
                     const double* leaf_gain, double* critical);

// A pruning pays its cost, and for each leaf v of some root fragment of it
//   size_penalty[v] sqrt(its leaves in v) + cell_penalty[v].
struct FragmentPenalty {
  const double* cost_gain;     // (n_nodes,) what splitting a node adds to the cost; 0 at leaves
  const double* leaf_gain;     // (n_nodes,) what splitting a node adds to the leaves
  const double* chain_leaves;  // (n_nodes,) how many of those lie beside the node's chain
  const double* size_penalty;  // (n_nodes,)
  const double* cell_penalty;  // (n_nodes,)
};

enum class Division : std::uint8_t { none, pruning, fragment };

// division: Division (n_nodes,), whether the pruning that pays least divides a node, and whether
// its cheapest root fragment does. The leaves beside a chain hold no rows, so that a fragment goes
// through it for free.
void fragment_pruning(const std::int32_t* left, std::int32_t n_nodes,
                      const FragmentPenalty& penalty, Division* division);

// step: int32 (n_nodes,) number of the merge that makes the node a leaf, -1 at leaves of the tree.
// Sibling leaves merge one pair at a time, always those below the node v with the smallest rise[v],
// of equal ones the lowest v.
void merge_order(const std::int32_t* left, std::int32_t n_nodes, const double* rise,
                 std::int32_t* step);

}  // namespace certree
