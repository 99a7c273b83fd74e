// Validation losses of many posteriors of a family at once, and mixtures of posteriors.
#pragma once

#include "votes.hpp"
#include "weights/weights.hpp"

namespace certree {

enum class VoteLoss { error, log_loss, squared };

// Posteriors of one family to compare.
struct ThetaGrid {
  Table<const double> theta;  // (n_grid, n_terms)
  PruningMode mode;
};

// Computes the validation loss of the vote under every posterior of a grid.
//   validation: class counts of the validation rows by node, as count() sums them up; for
//               VoteLoss::squared moments (weight, mean, squares) by node, as of moments()
//   loss:       (n_grid,) result: summed over the validation rows
void score_grid(const PosteriorFamily& family, const ThetaGrid& grid, const Votes& votes,
                const Counts& validation, VoteLoss kind, int n_threads, std::span<double> loss);

// What the vote under every posterior gives to the true class of the validation rows. Rows of one
// class in one leaf are a single entry, as are all rows of a leaf for a numeric target.
struct ValidationVotes {
  std::vector<double> rows;   // (n,) weight of the rows of an entry
  std::vector<double> truth;  // (n,) what the vote should be: 1, or the mean target of the rows
  std::vector<double> vote;   // (n, n_grid) probability of the true class, at least the rounding
                              // unit; for a numeric target the prediction
};

ValidationVotes validation_votes(const PosteriorFamily& family, const ThetaGrid& grid,
                                 const Votes& votes, const Counts& validation, VoteLoss kind,
                                 int n_threads);

// Fits the proportions of a mixture of posteriors to validation rows by n_steps steps of the EM
// algorithm, from equal proportions. Each step lowers the log loss of the mixture. rows: (n,)
// weights; probability: (n, n_posteriors) of the true class; proportion: (n_posteriors,) result.
// Returns the log loss, summed over the rows.
double fit_mixture(std::span<const double> rows, Table<const double> probability,
                   std::int64_t n_steps, std::span<double> proportion);

}  // namespace certree
