// Python bindings of single trees.
#include "bind.hpp"
#include "grow/placement.hpp"
#include "grow/thresholds.hpp"

namespace certree::bindings {
namespace {

template <class Real>
auto apply(const Ints& feature, const Doubles& threshold, const Ints& left,
           const Flags& default_left, const In<std::int64_t, 1>& category_start,
           const Ints& categories, const In<Real, 2>& X, int n_threads) {
  const auto tree = tree_of(feature, threshold, left, default_left, category_start, categories);
  const auto x = rows(X);
  return run([&](auto leaf) { certree::apply(tree, x, n_threads, leaf); },
             PredictedColumn<std::int32_t>(x.n_rows));
}

template <class Real>
auto average_leaf_scores(const Ints& feature, const Doubles& threshold, const Ints& left,
                         const Flags& default_left, const In<std::int64_t, 1>& category_start,
                         const Ints& categories, const In<Real, 2>& X, const Flags& both,
                         const Doubles& n, const Doubles2& score, int n_threads) {
  const auto tree = tree_of(feature, threshold, left, default_left, category_start, categories);
  const std::size_t m = left.size();
  const MissingRouting missing{sized("both", both, m), sized("n", n, m)};
  const auto scores = sized("score", score, m);
  const auto x = rows(X);
  const auto loop = [&](auto out) { certree::blend(tree, missing, x, scores, n_threads, out); };
  return run(loop, Rows<double>(x.n_rows, scores.width));
}

template <class Real>
auto mark_missing(const Ints& feature, const Doubles& threshold, const Ints& left,
                  const Flags& default_left, const In<std::int64_t, 1>& category_start,
                  const Ints& categories, const In<Real, 2>& X) {
  const auto tree = tree_of(feature, threshold, left, default_left, category_start, categories);
  const auto x = rows(X);
  return run([&](auto lacks) { certree::mark_lacking(tree, x, lacks); },
             Column<std::uint8_t>(left.size()));
}

auto compute_depths(const Ints& left, const Ints& chain) {
  const Shape tree = shape(left);
  const auto chains = sized("chain", chain, tree.size());
  return run([&](auto depth) { certree::depths(tree, chains, depth); },
             Column<std::int64_t>(tree.size()));
}

auto choose_thresholds(const Doubles& wanted, const Doubles& low, const Doubles& high) {
  const std::span<const double> near = view(wanted);
  const auto lows = sized("low", low, near.size()), highs = sized("high", high, near.size());
  const auto loop = [&](std::span<double> threshold) {
    for (const std::size_t v : indices(near.size()))
      threshold[v] = threshold_near(near[v], lows[v], highs[v]);
  };
  return run(loop, Column<double>(near.size()));
}

template <class Real>
auto place_thresholds(const Ints& feature, const Doubles& threshold, const Ints& left,
                      const Flags& default_left, const In<std::int64_t, 1>& category_start,
                      const Ints& categories, const In<Real, 2>& X, bool at_middle, int n_threads) {
  const auto tree = tree_of(feature, threshold, left, default_left, category_start, categories);
  const auto x = rows(X);
  expect_codes("feature", view(feature), x.width);
  const auto loop = [&](auto placed, auto low, auto high) {
    certree::place_thresholds(tree, x, at_middle, n_threads, {placed, low, high});
  };
  const auto column = [&] { return Column<double>(left.size()); };
  return run(loop, column(), column(), column());
}

template <class Real>
void bind_tree_of(nb::module_& core) {
  core.def("apply", &apply<Real>, "feature"_array, "threshold"_array, "left"_array,
           "default_left"_array, "category_start"_array, "categories"_array, "X"_array,
           "n_threads"_a, "Return the leaf that each row of X reaches.");
  core.def(
      "average_leaf_scores", &average_leaf_scores<Real>, "feature"_array, "threshold"_array,
      "left"_array, "default_left"_array, "category_start"_array, "categories"_array, "X"_array,
      "both"_array, "n"_array, "score"_array, "n_threads"_a,
      "Return the average score of the leaves that each row of X reaches, (n_rows, K), weighted by "
      "the fractions of the row. At nodes in both, rows with missing values go both ways, in "
      "proportion to the node weights n.");
  core.def("mark_missing", &mark_missing<Real>, "feature"_array, "threshold"_array, "left"_array,
           "default_left"_array, "category_start"_array, "categories"_array, "X"_array,
           "Return, for each node, whether a row that reaches it has NaN in the feature it tests.");
  core.def(
      "place_thresholds", &place_thresholds<Real>, "feature"_array, "threshold"_array, "left"_array,
      "default_left"_array, "category_start"_array, "categories"_array, "X"_array, "at_middle"_a,
      "n_threads"_a,
      "Move thresholds within gaps between values of X: near the middles if at_middle, else as far "
      "as float32 requires. Return (threshold, low, high), (m,) each: low is the largest value not "
      "above the threshold, high the smallest above it; low is -inf where a threshold stays.");
}

}  // namespace

void bind_tree(nb::module_& core) {
  bind_tree_of<float>(core);
  bind_tree_of<double>(core);
  core.def("choose_thresholds", &choose_thresholds, "wanted"_array, "low"_array, "high"_array,
           "Return thresholds in [low, high), near wanted, which separate low and high also as "
           "float32, unless both round to the same float32 number.");
  core.def("compute_depths", &compute_depths, "left"_array, "chain"_array,
           "Return the number of regions above each node: the sum of chain over its ancestors.");
}

}  // namespace certree::bindings
