// One round of boosting: what a tree that some rows have grown predicts once the others have chosen
// the weights of all its prunings.
#pragma once

#include "tree.hpp"

namespace certree {

// The rows of a round.
struct RoundRows {
  std::span<const std::int32_t> leaf;     // (n,) the leaf that each reaches; -1: it has no part
  std::span<const std::int32_t> growing;  // numbers of those that have grown the tree
  std::span<const std::int32_t> others;   // and of those that choose weights
  Table<const double> gradient;           // (n_outputs, n) of the loss by the scores
  Table<const double> hessian;            // (n_outputs, n)
};

// What the in-bag or the out-of-bag rows sum up to, of each output, in the units of all rows of
// this set.
struct RowSetSums {
  std::int64_t n_rows;
  Table<const double> largest;  // (n_outputs, 2) gradient and Hessian, without their signs
  Table<std::int64_t> whole;    // (n_outputs, 2 * m) of gradients and Hessians by leaf
};

struct RoundSums {
  RowSetSums growing, others;
};

// Writes the largest absolute gradient and Hessian of both sets of rows, (n_outputs, 2) each.
void find_largest_by_output(const RoundRows& rows, Table<double> growing, Table<double> others);

// Adds the gradients and Hessians of rows to the sums of the leaves that they reach, in the units
// of `sums`.
void add_up_leaves(const RoundRows& rows, const RoundSums& sums);

// Outputs that belong together, as scores of the classes of a row do: one vote serves them.
struct Voters {
  std::int64_t first, n_outputs;
  double temperature;  // of their loss of the rows that choose weights
};

// How the weights of prunings are chosen.
struct RoundVote {
  double shrinkage;                // Hessian of rows like its parent's that every node is given
  std::span<const Voters> voters;  // each output belongs to one; losses are added in their order
  double others;                   // fraction of the losses of all others that counts in a vote
  double curvature;                // fraction of their Hessians that counts
  std::span<const double> stop;    // probabilities of a node to be a leaf, equally likely; or empty
  std::span<const std::int32_t> feature;         // (m,) that nodes compare
  std::span<const std::int8_t> monotonic_signs;  // (p,) 1: rising, -1: falling, 0: free; or empty
};

// step: (m, n_outputs) at leaves the average over the prunings of what each predicts: a leaf the
// Newton step of all its rows, drawn to that of its parent. At other nodes the part of it that is
// known there: what a child has more, or less, is due to the split above it.
// The weight of a pruning depends on its prior and on the loss, to second order, that the steps of
// the rows that grew the tree cost the other rows. Without probabilities the whole tree is the only
// one.
// deviation: (m, n_outputs) standard deviation of what the prunings predict, known likewise.
// weight: (n_voters, m) probability that a node is a leaf. Returns the log of the evidence, of all
// votes together.
double round_steps(Shape tree, const RoundRows& rows, const RoundVote& vote, Table<double> step,
                   Table<double> deviation, Table<double> weight);

// The same by sums that are known. What is there at other nodes than leaves is not read.
double round_steps(Shape tree, const RoundSums& sums, const RoundVote& vote, Table<double> step,
                   Table<double> deviation, Table<double> weight);

}  // namespace certree
