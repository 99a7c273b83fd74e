// Python bindings of posteriors over prunings.
#include "bind.hpp"

namespace certree::bindings {
namespace {

void expect_terms(std::int64_t n_terms) {
  if (n_terms != 2 && n_terms != 3) throw std::invalid_argument("n_terms must be 2 or 3");
}

auto error_gains(const Ints& left, const ClassCounts& counts, const Ints& label, double weight_unit,
                 std::int64_t n_terms, bool empty_leaves_count) {
  const Shape tree = shape(left);
  const Counts weights = counts_of("counts", counts, tree);
  const auto labels = sized("label", label, tree.size());
  expect_codes("label", labels, weights.n_classes);
  expect_terms(n_terms);
  const auto loop = [&](auto gains) {
    certree::error_gains(tree, weights, labels, weight_unit, empty_leaves_count, gains);
  };
  return run(loop, Rows<double>(tree.size(), n_terms));
}

auto squared_gains(const Ints& left, const Doubles& rows, const Doubles& mean, double unit,
                   double weight_unit, std::int64_t n_terms, bool empty_leaves_count) {
  const Shape tree = shape(left);
  const auto totals = sized("rows", rows, tree.size());
  const auto means = sized("mean", mean, tree.size());
  expect_terms(n_terms);
  const auto loop = [&](auto gains) {
    certree::squared_gains(tree, totals, means, unit, weight_unit, empty_leaves_count, gains);
  };
  return run(loop, Rows<double>(tree.size(), n_terms));
}

auto compute_posterior(const Ints& left, const Doubles2& gains, const Doubles& stop,
                       const Doubles& split, const Doubles& theta, const Doubles& root,
                       bool prune) {
  const PosteriorFamily family = family_of(left, gains, stop, split);
  const auto parameters = sized("theta", theta, family.n_terms());
  const auto root_features = sized("root", root, family.n_terms());
  const auto loop = [&](auto weight, auto log_odds) {
    return certree::compute_posterior(family, parameters, root_features, mode_of(prune), weight,
                                      log_odds);
  };
  return run(loop, Column<double>(left.size()), Column<double>(left.size()));
}

auto reach(const Ints& left, const Doubles& log_odds) {
  const Shape tree = shape(left);
  const auto odds = sized("log_odds", log_odds, tree.size());
  return run([&](auto reached) { certree::reach(tree, odds, reached); },
             Column<double>(tree.size()));
}

auto sums_below(const Ints& left, const Doubles& log_odds, const Doubles& value) {
  const Shape tree = shape(left);
  const auto odds = sized("log_odds", log_odds, tree.size());
  const auto numbers = sized("value", value, tree.size());
  return run([&](auto sum) { certree::sums_below(tree, odds, numbers, sum); },
             Column<double>(tree.size()));
}

auto likeliest(const Ints& left, const Doubles& log_odds, const Doubles& chain_mode) {
  const Shape tree = shape(left);
  const auto odds = sized("log_odds", log_odds, tree.size());
  const auto modes = sized("chain_mode", chain_mode, tree.size());
  return run([&](auto pruning) { certree::likeliest(tree, odds, modes, pruning); },
             Column<double>(tree.size()));
}

}  // namespace

void bind_weights(nb::module_& core) {
  core.def(
      "compute_error_gains", &error_gains, "left"_array, "counts"_array, "label"_array,
      "weight_unit"_a, "n_terms"_a, "empty_leaves_count"_a,
      "Return the gains (m, n_terms) of each split in errors, square roots of rows and, with three "
      "terms, leaves. label: the label of each node; weight_unit: mean weight of a row.");
  core.def("compute_squared_gains", &squared_gains, "left"_array, "rows"_array, "mean"_array,
           "unit"_a, "weight_unit"_a, "n_terms"_a, "empty_leaves_count"_a,
           "Return the gains (m, n_terms) of each split in squared error divided by unit, square "
           "roots of "
           "rows and, with three terms, leaves. rows, mean: weight and mean of each node.");
  core.def(
      "compute_posterior", &compute_posterior, "left"_array, "gains"_array, "stop"_array,
      "split"_array, "theta"_array, "root"_array, "prune"_a,
      "Compute one posterior over prunings, or the best pruning. Return the probability of each "
      "node to be a leaf, its log odds of being split, and the log evidence.");
  core.def("compute_reach_probabilities", &reach, "left"_array, "log_odds"_array,
           "Return the probability that each node is in the pruning, as a leaf or above one.");
  core.def(
      "sum_below_nodes", &sums_below, "left"_array, "log_odds"_array, "value"_array,
      "Return, for each node, the expected sum of value over the leaves of the pruning at or below "
      "it, given that it is in the pruning.");
  core.def("find_likeliest_pruning", &likeliest, "left"_array, "log_odds"_array, "chain_mode"_array,
           "Find the most probable pruning. Return +inf for nodes that it splits, else -inf.");
}

}  // namespace certree::bindings
