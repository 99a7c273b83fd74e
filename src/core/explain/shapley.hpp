// Values of features in the game that a row plays with trees: Shapley's, Banzhaf's, and others that
// average over how many features are known.
//
// Some features of a row are known, the others are those of training rows or of rows of a
// background. A leaf says its value times the chance that a row which is partly known arrives
// there: a product with one factor for each feature of its path, which is `holds` where the feature
// is known and `chance` where it is not. If each feature is known with probability t, the expected
// change that feature j makes is (holds_j - chance_j) times the other features' mixtures chance + t
// (holds - chance). Its average over uniform t is the Shapley value, a polynomial in t that Gauss
// and Legendre's points sum exactly; at t = 1/2 it is the Banzhaf value.
#pragma once

#include "ensembles/predict.hpp"

namespace certree {

// Probabilities t and their weights, symmetric about 1/2.
struct Mixture {
  std::span<const double> point, weight;
};

// part: (n_rows, n_outputs * p) of each row and output, the value of each feature. Features that
// are not known send a row on by branches.rows, the rows of the nodes.
template <class Real>
void values_by_cover(const TreesView& trees, const MissingRouting& missing, Table<const Real> X,
                     const Mixture& mixture, int n_threads, Table<double> part);

// The same where features that are not known are those of a row of the background, and what is said
// is averaged over its rows.
template <class Real>
void values_by_background(const TreesView& trees, const MissingRouting& missing,
                          Table<const Real> X, Table<const Real> background, const Mixture& mixture,
                          int n_threads, Table<double> part);

}  // namespace certree
