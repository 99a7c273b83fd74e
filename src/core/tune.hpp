// What many posteriors on one tree say of judging rows, and mixtures of such posteriors.
#pragma once

#include "votes.hpp"
#include "weights/weights.hpp"

namespace certree {

enum class Loss { error, log_loss, squared };

// Laws of one family: theta is (n, n_terms).
struct Grid {
  Table<const double> theta;
  Rule rule;
};

// loss[g]: summed loss of the vote under each posterior on judging rows, whose weights by node and
// class are judging, as count() sums them, or (rows, mean, squares) by node, as moments() does, for
// the squared loss.
void score_grid(const Terms& terms, const Grid& grid, const Values& values, const Counts& judging,
                Loss kind, int n_threads, std::span<double> loss);

// The vote's share of the right class, or of numbers its mean. Held-out rows that reach the same
// leaf, and are of the same class, are one row here; rows: (n,) their weight, truth: (n,) 1 or
// their mean, vote: (n, n_grid), of classes at least the rounding unit.
struct JudgedVotes {
  std::vector<double> rows;
  std::vector<double> truth;
  std::vector<double> vote;
};

JudgedVotes judged_votes(const Terms& terms, const Grid& grid, const Values& values,
                         const Counts& judging, Loss kind, int n_threads);

// proportion: (n_posteriors,) of posteriors in a mixture, from equal ones by so many steps of the
// EM algorithm, each of which lowers the log loss of the mixture on judging rows. Returns that
// loss. rows: (n,), share: (n, n_posteriors).
double mix(std::span<const double> rows, Table<const double> share, std::int64_t n_steps,
           std::span<double> proportion);

}  // namespace certree
