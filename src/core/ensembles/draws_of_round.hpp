// What a round draws, and the gradients that its tree grows on: the same wherever the rows lie.
#pragma once

#include <array>

#include "grow/binned_growth.hpp"
#include "grow/draws.hpp"

namespace certree {
namespace {

// Quantiles of the exponential distribution, of which weights of rows are drawn.
inline const std::array<double, 256>& exponential() {
  static const auto quantiles = [] {
    std::array<double, 256> made{};
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = -std::log((static_cast<double>(i) + 0.5) / 256.0);
    return made;
  }();
  return quantiles;
}

// Near enough to the normal distribution, and the same bits wherever it is drawn.
inline double normal(Random& random) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

// What rounds draw of.
struct RoundChoices {
  std::span<const std::int32_t> n_features;    // that a tree may compare, one after the other
  std::span<const std::int32_t> n_thresholds;  // of a feature, one after the other; 0: all
  std::size_t n_outputs;
  const FeatureOrder& feature_order;  // what features are drawn of
};

struct RoundDraws {
  std::uint64_t odd, other_odd;  // deal keys anew: which rows grow, and what they count as
  std::vector<double> factors;   // (n_outputs,) of the gradients that one tree serves; or empty
  std::vector<std::int32_t> features;  // ascending
  std::int64_t n_edges = 0;            // of bins that stay; 0: all
  std::uint64_t key_of_edges = 0;

  RoundDraws(const RoundChoices& among, std::uint64_t seed, std::int64_t number) {
    Random random(key_of(seed, static_cast<std::uint64_t>(number)));
    odd = random.bits() | 1;
    other_odd = random.bits() | 1;
    if (among.n_outputs > 1)
      for (std::size_t k = 0; k < among.n_outputs; ++k) factors.push_back(normal(random));
    const auto turn = static_cast<std::size_t>(number);
    const std::size_t n_kinds = among.n_features.size();
    features =
        features_of_tree(among.feature_order, among.n_features[turn % n_kinds], random.bits());
    std::ranges::sort(features);
    // The next ones once all numbers of features have had their turn.
    n_edges = among.n_thresholds[turn / n_kinds % among.n_thresholds.size()];
    if (n_edges >= kMostBins) n_edges = 0;
    if (n_edges > 0) key_of_edges = random.bits();
  }
};

// Whether a row grows the tree of a round. Keys are mixed already: a product with an odd number
// deals them anew.
struct RoundLot {
  std::uint64_t odd, limit;
  bool all_grow;

  RoundLot(std::uint64_t odd_number, double subsample)
      : odd(odd_number),
        limit(subsample >= 1.0 ? 0 : static_cast<std::uint64_t>(subsample * 0x1p64)),
        all_grow(subsample >= 1.0) {}
  std::uint64_t mixed(std::uint64_t key) const { return key * odd; }
  bool grows(std::uint64_t key) const { return all_grow || mixed(key) < limit; }
};

// Numbers of the rows that grow, and of the others; both have room for n. Returns how many grow.
template <class Grows>
std::size_t part_rows(std::size_t n, const Grows& grows, std::int32_t* growing,
                      std::int32_t* others) {
  std::size_t n_growing = 0, n_others = 0;
  for (const std::size_t i : indices(n)) {
    const bool one_grows = grows(i);
    // No branch: it would be guessed wrong too often.
    growing[n_growing] = others[n_others] = static_cast<std::int32_t>(i);
    n_growing += one_grows;
    n_others += !one_grows;
  }
  return n_growing;
}

// Gradients (2 * n_outputs, n) times the weights of their rows, if there are some.
inline void scale_gradients(std::span<const double> weight, Table<double> gradients) {
  if (weight.empty()) return;
  for (std::int64_t k = 0; k < gradients.n_rows; ++k) {
    double* const one = gradients.row(k);
    for (const std::size_t i : indices(weight.size())) one[i] *= weight[i];
  }
}

// Gradients of a random direction among the outputs, which one tree serves: a random
// projection of the gradients is enough to find splits that serve all of them (Iosipoi and
// Vakhrushev, "SketchBoost", NeurIPS 2022). Adds what some outputs have in it. mixed: (2, n).
inline void add_mixed(Table<const double> g, Table<const double> h, std::span<const double> factors,
                      Table<double> mixed) {
  double *const to_g = mixed.row(0), *const to_h = mixed.row(1);
  for (std::int64_t k = 0; k < g.n_rows; ++k) {
    const double factor = factors[static_cast<std::size_t>(k)], square = factor * factor;
    for (const std::size_t i : indices(g.width)) {
      to_g[i] += factor * g.row(k)[i];
      to_h[i] += square * h.row(k)[i];
    }
  }
}

// What a tree grows on. Weights of the rows as in Rubin, "The Bayesian bootstrap", 1981, tell
// trees apart further.
inline Derivatives response_of_round(std::span<const double> gradient,
                                     std::span<const double> hessian,
                                     std::span<const std::uint64_t> keys, std::uint64_t odd,
                                     bool all_grow) {
  Derivatives made{gradient, hessian, 0.0, 0.0};
  if (!all_grow) made.factors = {keys, odd, exponential()};
  return made;
}

}  // namespace
}  // namespace certree
