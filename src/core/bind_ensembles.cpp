// The doors of the ensembles.
#include "bind.hpp"
#include "ensembles/predict.hpp"
#include "ensembles/round.hpp"

namespace certree::door {
namespace {

void expect_probabilities(std::span<const double> stop) {
  if (!std::ranges::all_of(stop, [](double s) { return s > 0.0 && s < 1.0; }))
    throw std::invalid_argument("stop must lie between 0 and 1");
}

auto round_steps(const Ints& left, const Ints& leaf, const Flags& grew, const Doubles2& gradient,
                 const Doubles2& hessian, double shrinkage, double temperature, double curvature,
                 const Doubles& stop, const Ints& feature,
                 const std::optional<In<std::int8_t, 1>>& slope) {
  const Shape tree = shape(left);
  const std::size_t n = leaf.size(), n_outputs = gradient.shape(0);
  const RoundRows rows{view(leaf), sized("grew", grew, n),
                       sized("gradient", gradient, n_outputs, n),
                       sized("hessian", hessian, n_outputs, n)};
  const auto m = static_cast<std::int32_t>(tree.size());
  if (std::ranges::any_of(rows.leaf, [&](auto v) { return v < -1 || v >= m; }))
    throw std::invalid_argument("leaf must lie in -1 .. " + std::to_string(m - 1));
  expect_probabilities(view(stop));
  RoundVote vote{shrinkage, temperature, curvature, view(stop), {}, {}};
  if (slope) {
    vote.feature = sized("feature", feature, tree.size());
    vote.slope = view(*slope);
    expect_codes("feature", vote.feature, std::ssize(vote.slope));
  }
  const auto loop = [&](auto step, auto weight) {
    return certree::round_steps(tree, rows, vote, step, weight);
  };
  return run(loop, Rows<double>(m, n_outputs), Column<double>(m));
}

// Single rows must be fast, so the columns are not looked through here: Trees has done it.
TreesView trees_of(const TreeView& nodes, const In<std::int64_t, 1>& root, const Doubles2& value) {
  return {nodes, view(root), sized("value", value, nodes.left.size())};
}

template <class Real>
auto add_trees(const Ints& feature, const Doubles& threshold, const Ints& left,
               const Flags& missing_left, const In<std::int64_t, 1>& category_start,
               const Ints& categories, const In<std::int64_t, 1>& root, const Doubles2& value,
               std::int64_t first, std::int64_t last, const In<Real, 2>& X, const Doubles2& start,
               int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, missing_left, category_start, categories);
  const TreesView trees = trees_of(nodes, root, value);
  if (first < 0 || first > last || std::cmp_greater(last, root.size()))
    throw std::invalid_argument("first and last must be trees");
  const auto x = rows(X);
  const auto before = sized("start", start, value.shape(1), static_cast<std::size_t>(x.n_rows));
  const auto loop = [&](auto total) {
    std::ranges::copy(before.values(), total.data);
    certree::add_trees(trees, static_cast<std::size_t>(first), static_cast<std::size_t>(last), x,
                       n_threads, total);
  };
  return run(loop, Rows<double>(before.n_rows, x.n_rows));
}

template <class Real>
auto attribute(const Ints& feature, const Doubles& threshold, const Ints& left,
               const Flags& missing_left, const In<std::int64_t, 1>& category_start,
               const Ints& categories, const In<std::int64_t, 1>& root, const Doubles2& value,
               const In<Real, 2>& X, int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, missing_left, category_start, categories);
  const TreesView trees = trees_of(nodes, root, value);
  const auto x = rows(X);
  const std::size_t width = checked_size(value.shape(1), x.width + 1);
  return run([&](auto part) { certree::attribute(trees, x, n_threads, part); },
             Rows<double>(x.n_rows, width));
}

template <class Real>
void bind_for(nb::module_& core) {
  core.def("add_trees", &add_trees<Real>, "feature"_array, "threshold"_array, "left"_array,
           "missing_left"_array, "category_start"_array, "categories"_array, "root"_array,
           "value"_array, "first"_a, "last"_a, "X"_array, "start"_array, "n_threads"_a,
           "Scores (n_outputs, n) to which trees first, ..., last - 1 have added.");
  core.def("attribute", &attribute<Real>, "feature"_array, "threshold"_array, "left"_array,
           "missing_left"_array, "category_start"_array, "categories"_array, "root"_array,
           "value"_array, "X"_array, "n_threads"_a,
           "What each feature, and behind them the roots, add to the scores of rows.");
}

}  // namespace

void bind_ensembles(nb::module_& core) {
  core.def("round_steps", &round_steps, "left"_array, "leaf"_array, "grew"_array, "gradient"_array,
           "hessian"_array, "shrinkage"_a, "temperature"_a, "curvature"_a, "stop"_array,
           "feature"_array, "slope"_array_or_none,
           "(steps, weight, log evidence) of a tree whose prunings have been weighed.");
  bind_for<float>(core);
  bind_for<double>(core);
}

}  // namespace certree::door
