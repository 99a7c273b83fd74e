// Boosting, round by round: some rows grow a tree, the others weigh its prunings, all set its
// steps.
#pragma once

#include "ensembles/losses.hpp"
#include "ensembles/ranking.hpp"
#include "grow/binned_growth.hpp"

namespace certree {

// What is looked at after each round. A score is the mean loss, negated: the higher the better.
struct Watch {
  bool is_on;                      // whether scores are taken
  std::int64_t n_iter_no_change;   // so many rounds without a gain are the last ones; 0: any number
  double tol;                      // what a gain must exceed
  std::span<const double> before;  // scores so far
};

// How many scores at the end have not beaten the best one before by more than tol. The first one is
// that which others have to beat.
std::int64_t rounds_without_gain(std::span<const double> scores, double tol);

// What outputs are for: all of them the classes of a row, or each a number of its own.
struct Goal {
  Loss loss;
  double share;                   // of its loss in that of a row
  std::int64_t first, n_outputs;  // which outputs
  std::int64_t target;            // which row of the targets
};

// What rounds are made with.
struct RoundSettings {
  std::span<const Goal> goals;  // of one kind, in the order in which they are added up
  double learning_rate;
  double others;                             // share of the losses of other goals in a goal's vote
  double l2;                                 // Hessian by which a step is drawn to its parent's
  double curvature;                          // share of the Hessians of rows that weigh
  double subsample;                          // share of the rows that grow trees; 1: all, each once
  std::span<const double> stop;              // of the priors that are mixed; or empty: no vote
  std::span<const std::int32_t> n_features;  // that a tree may compare, one number after the other
  BinnedGrowth growth;
};

// The rows of a run: first those that train, then those that judge. Of these some may be in the
// bins of those that train, and others have values that no bin has to hold.
struct RunRows {
  BinnedTable table;                           // (p, n less those of which values are given)
  Table<const double> values;                  // (any, p) of the last rows
  SparseRows<double> stored_values;            // or these, if they are some
  Table<const double> y;                       // (n_targets, n)
  std::span<const double> weight;              // (n,) or empty
  std::span<const std::uint64_t> keys;         // (n_training,) by which rows are drawn
  std::span<const std::int32_t> n_thresholds;  // of a feature, one after the other; 0: all
  std::uint64_t seed;                          // tells with its number what a round draws
  // (2 * n_outputs, n_training) gradients, then Hessians, of a custom loss; or empty
  Table<const double> gradients{};
  RankingGoal goal;                     // where queries are ranked
  std::span<const std::int32_t> query;  // (n,) of each row there; or empty
};

// Trees one behind the other, and what came of them.
struct RunTrees {
  TreeColumns nodes;
  std::vector<std::int64_t> root;  // (n_rounds,)
  std::vector<double> value;       // (m, n_outputs) steps
  std::vector<double> deviation;   // (m, n_outputs) of what the prunings say from these steps
  std::vector<double> rows;        // (m,) that have grown the trees
  std::vector<double> losses;      // (n_rounds,) of the rows that judge, summed after each round
  // (2 * n_rounds,) where rounds are watched: of the rows that train, and of those that judge
  std::vector<double> scores;
};

// Makes rounds first, ..., last - 1, or less where scores gain nothing any more: those of the rows
// that judge, if there are some. scores: (n_outputs, n) of all rows, before and after.
RunTrees make_rounds(const RunRows& rows, const RoundSettings& settings, const Watch& watch,
                     std::int64_t first, std::int64_t last, Table<double> scores);

}  // namespace certree
