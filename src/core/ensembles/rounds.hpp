// Boosting, round by round: some rows grow a tree, the others weigh its prunings, all set its
// steps.
#pragma once

#include "ensembles/losses.hpp"
#include "grow/binned_growth.hpp"

namespace certree {

// What rounds are made with.
struct RoundSettings {
  Loss loss;
  double learning_rate;
  double l2;                                 // Hessian by which a step is drawn to its parent's
  double curvature;                          // share of the Hessians of rows that weigh
  double subsample;                          // share of the rows that grow trees; 1: all, each once
  std::span<const double> stop;              // of the priors that are mixed; or empty: no vote
  std::span<const std::int32_t> n_features;  // that a tree may compare, one number after the other
  BinnedGrowth growth;
};

// The rows of a run: first those that train, then those that judge.
struct RunRows {
  BinnedTable table;                           // (p, n)
  std::span<const double> y;                   // (n,)
  std::span<const double> weight;              // (n,) or empty
  std::span<const std::uint64_t> keys;         // (n_training,) by which rows are drawn
  std::span<const std::int32_t> n_thresholds;  // of a feature, one after the other; 0: all
  std::uint64_t seed;                          // tells with its number what a round draws
};

// Trees one behind the other, and what came of them.
struct RunTrees {
  TreeColumns nodes;
  std::vector<std::int64_t> root;  // (n_rounds,)
  std::vector<double> value;       // (m, n_outputs) steps
  std::vector<double> rows;        // (m,) that have grown the trees
  std::vector<double> losses;      // (n_rounds,) of the rows that judge, summed after each round
};

// Makes rounds first, ..., last - 1. scores: (n_outputs, n) of all rows, before and after.
RunTrees make_rounds(const RunRows& rows, const RoundSettings& settings, std::int64_t first,
                     std::int64_t last, Table<double> scores);

}  // namespace certree
