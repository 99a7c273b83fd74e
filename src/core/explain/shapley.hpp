// Attributions of predictions to features by cooperative games: Shapley values, Banzhaf values, and
// other averages over coalitions.
//
// In the game of a row x some features are known; the others have the values of training rows, or
// of the rows of a background. The value of a leaf counts with the probability that such a row
// reaches it. This is a product with one factor for each feature of the leaf's path: `match`, the
// fraction of x that passes the path's tests of the feature, if the feature is known, and `chance`,
// the probability that a row passes them, if it is not. If every feature is known with probability
// t, feature j changes the expected product by (match_j - chance_j) times the product over the
// other features of chance + t (match - chance). The Shapley value is the average of this
// polynomial over uniform t, which Gauss-Legendre quadrature computes exactly; the Banzhaf value is
// its value at t = 1/2.
#pragma once

#include "ensembles/predict.hpp"

namespace certree {

// Quadrature over t: points t and their weights, symmetric about 1/2.
struct Mixture {
  std::span<const double> point, weight;
};

// Computes the attributions of every row, when unknown features are those of the training rows that
// reach a node: they go to the children in proportion to missing.node_weight. attribution: (n_rows,
// n_outputs * p) of each row and output, the value of each feature.
template <class Real>
void values_by_cover(const TreesView& trees, const MissingRouting& missing, Table<const Real> X,
                     const Mixture& mixture, int n_threads, Table<double> attribution);

// Computes the same when unknown features are those of a background row, as the average over the
// background rows.
template <class Real>
void values_by_background(const TreesView& trees, const MissingRouting& missing,
                          Table<const Real> X, Table<const Real> background, const Mixture& mixture,
                          int n_threads, Table<double> attribution);

}  // namespace certree
