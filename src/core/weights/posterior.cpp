// The posterior of one theta: its weights, and expectations under it.

#include "weights/upward_pass.hpp"

namespace certree {
namespace {

CERTREE_SIMD_CLONES void compute_odds(UpwardPass<1>& pass, PruningMode mode, const double* theta,
                                      double* odds, double* log_odds) {
  pass.run(mode, theta, odds, log_odds);
}
const ClonePointer<decltype(compute_odds)> compute_odds_here = compute_odds;

}  // namespace

double compute_posterior(const PosteriorFamily& family, std::span<const double> theta,
                         std::span<const double> root, PruningMode mode, std::span<double> weight,
                         std::span<double> log_odds) {
  const Shape tree = family.tree;
  for (const std::size_t v : indices(tree.size()))
    if (tree.is_leaf(v)) log_odds[v] = -kInfinity;
  UpwardPass<1> pass(family);
  compute_odds_here(pass, mode, theta.data(), weight.data(), log_odds.data());
  // The way down: weight[v] holds the odds of v until v is visited.
  const auto reached = make_buffer<double>(tree.size());
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size())) {
    if (roots.is_root(v)) reached[v] = 1.0;
    if (tree.is_leaf(v)) {
      weight[v] = reached[v];
      continue;
    }
    const Decision decision(weight[v]);
    const std::size_t l = tree.left(v);
    reached[l] = reached[l + 1] = reached[v] * decision.split;
    weight[v] = reached[v] * decision.stop;
  }
  return mode == PruningMode::average ? pass.log_evidence(theta.data(), root.data(), 0) : 0.0;
}

void reach(Shape tree, std::span<const double> log_odds, std::span<double> reached) {
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size())) {
    if (roots.is_root(v)) reached[v] = 1.0;
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    reached[l] = reached[l + 1] = reached[v] / (1.0 + std::exp(-log_odds[v]));
  }
}

void sums_below(Shape tree, std::span<const double> log_odds, std::span<const double> value,
                std::span<double> sum) {
  for (const std::size_t v : indices_down(tree.size())) {
    sum[v] = value[v];
    if (tree.is_leaf(v)) continue;
    const double below = sum[tree.left(v)] + sum[tree.left(v) + 1];
    sum[v] += (below - value[v]) / (1.0 + std::exp(-log_odds[v]));
  }
}

void likeliest(Shape tree, std::span<const double> log_odds, std::span<const double> chain_mode,
               std::span<double> log_odds_of_pruning) {
  // log(1 + exp(x)): the log probabilities of splitting and stopping are -softplus(-x) and
  // -softplus(x).
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  const auto best = make_buffer<double>(tree.size());  // log probability of the best pruning below
  for (const std::size_t v : indices_down(tree.size())) {
    best[v] = chain_mode[v];
    log_odds_of_pruning[v] = -kInfinity;
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    const double stop = best[v] - softplus(log_odds[v]);
    const double split = best[l] + best[l + 1] - softplus(-log_odds[v]);
    const double rounding = 1e-12 * (1.0 + std::abs(stop));  // smaller differences are ties: stop
    const bool splits = std::isinf(stop) ? split > stop : split > stop + rounding;
    best[v] = splits ? split : stop;
    if (splits) log_odds_of_pruning[v] = kInfinity;
  }
}

}  // namespace certree
