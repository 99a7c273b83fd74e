// One posterior at one temperature: its weights, and what is asked of its decisions.

#include "weights/upward_pass.hpp"

namespace certree {
namespace {

CERTREE_SIMD_CLONES void decide(UpPass<1>& pass, Rule rule, const double* theta, double* odds,
                                double* log_odds) {
  pass.run(rule, theta, odds, log_odds);
}
const ClonePointer<decltype(decide)> decide_here = decide;

}  // namespace

double weigh(const Terms& terms, std::span<const double> theta, std::span<const double> root,
             Rule rule, std::span<double> weight, std::span<double> log_odds) {
  const Shape tree = terms.tree;
  for (const std::size_t v : indices(tree.size()))
    if (tree.is_leaf(v)) log_odds[v] = -kInfinity;
  UpPass<1> pass(terms);
  decide_here(pass, rule, theta.data(), weight.data(), log_odds.data());
  // Down again: weight holds the odds of a node until it has been reached.
  const auto reached = make_buffer<double>(tree.size());
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size())) {
    if (roots.is_root(v)) reached[v] = 1.0;
    if (tree.is_leaf(v)) {
      weight[v] = reached[v];
      continue;
    }
    const Odds decision(weight[v]);
    const std::size_t l = tree.left(v);
    reached[l] = reached[l + 1] = reached[v] * decision.split;
    weight[v] = reached[v] * decision.stop;
  }
  return rule == Rule::average ? pass.evidence(theta.data(), root.data(), 0) : 0.0;
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
  // log(1 + exp(x)), so that a decision's log probabilities are -softplus(x) and -softplus(-x).
  const auto softplus = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  const auto best = make_buffer<double>(tree.size());
  for (const std::size_t v : indices_down(tree.size())) {
    best[v] = chain_mode[v];
    log_odds_of_pruning[v] = -kInfinity;
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v);
    const double stop = best[v] - softplus(log_odds[v]);
    const double split = best[l] + best[l + 1] - softplus(-log_odds[v]);
    const double rounding = 1e-12 * (1.0 + std::abs(stop));  // a tie within it stops
    const bool splits = std::isinf(stop) ? split > stop : split > stop + rounding;
    best[v] = splits ? split : stop;
    if (splits) log_odds_of_pruning[v] = kInfinity;
  }
}

}  // namespace certree
