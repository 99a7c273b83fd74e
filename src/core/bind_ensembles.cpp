// The doors of the ensembles.
#include "bind_packed.hpp"
#include "ensembles/losses.hpp"
#include "ensembles/round.hpp"

namespace certree::door {
namespace {

void expect_probabilities(std::span<const double> stop) {
  if (!std::ranges::all_of(stop, [](double s) { return s > 0.0 && s < 1.0; }))
    throw std::invalid_argument("stop must lie between 0 and 1");
}

auto round_steps(const Ints& left, const Ints& leaf, const Ints& growing, const Ints& others,
                 const Doubles2& gradient, const Doubles2& hessian, double shrinkage,
                 double temperature, double curvature, const Doubles& stop, const Ints& feature,
                 const std::optional<In<std::int8_t, 1>>& slope) {
  const Shape tree = shape(left);
  const std::size_t n = leaf.size(), n_outputs = gradient.shape(0);
  const RoundRows rows{view(leaf), view(growing), view(others),
                       sized("gradient", gradient, n_outputs, n),
                       sized("hessian", hessian, n_outputs, n)};
  const auto m = static_cast<std::int32_t>(tree.size());
  unsigned beyond = 0;
  for (const std::int32_t v : rows.leaf) beyond |= (v < kLeaf) | (v >= m);
  if (beyond) throw std::invalid_argument("leaf must lie in -1 .. " + std::to_string(m - 1));
  expect_codes("growing", rows.growing, static_cast<std::int64_t>(n));
  expect_codes("others", rows.others, static_cast<std::int64_t>(n));
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
  return run(loop, Rows<double>(tree.size(), n_outputs), Column<double>(tree.size()));
}

auto add_steps(const Ints& leaf, const Doubles2& value, const Doubles2& scores) {
  const auto before = sized("scores", scores, value.shape(1), leaf.size());
  expect_codes("leaf", view(leaf), static_cast<std::int64_t>(value.shape(0)));
  const auto loop = [&](auto total) { certree::add_steps(view(leaf), view(value), before, total); };
  return run(loop, Rows<double>(before.n_rows, before.width));
}

auto log_loss_slopes(const Ints& y, const Doubles2& scores, double least) {
  const auto before = sized("scores", scores, scores.shape(0), y.size());
  expect_codes("y", view(y), std::max<std::int64_t>(before.n_rows, 2));
  const auto loop = [&](auto gradient, auto hessian) {
    certree::log_loss_slopes(view(y), before, least, gradient, hessian);
  };
  return run(loop, Rows<double>(before.n_rows, before.width),
             Rows<double>(before.n_rows, before.width));
}

// Numbers of the rows with a flag, and of those without.
auto part_rows(const In<bool, 1>& flags) {
  if (flags.size() > 2147483647u) throw std::invalid_argument("flags are more than 2147483647");
  std::array<std::vector<std::int32_t>, 2> parts;
  unlocked([&] { parts = certree::part_rows(view(flags)); });
  return std::tuple(owned(std::move(parts[0])), owned(std::move(parts[1])));
}

// Single rows must be fast, so the columns are not looked through here: Trees has done it.
TreesView trees_of(const TreeView& nodes, const In<std::int64_t, 1>& root, const Doubles2& value) {
  return {nodes, view(root), sized("value", value, nodes.left.size()), {}};
}

auto pack_trees(const Ints& feature, const Doubles& threshold, const Ints& left,
                const Flags& missing_left, const In<std::int64_t, 1>& category_start,
                const Ints& categories) {
  const auto nodes = tree_of(feature, threshold, left, missing_left, category_start, categories);
  const std::size_t m = left.size();
  const auto loop = [&](auto rows) {
    certree::pack(nodes, {reinterpret_cast<PackedNode*>(rows.data), m});
  };
  return run(loop, Rows<std::uint64_t>(m, 2));
}

template <class Real>
auto add_trees(const Packed& packed, const In<std::int64_t, 1>& category_start,
               const Ints& categories, const In<std::int64_t, 1>& root, const Doubles2& value,
               std::int64_t first, std::int64_t last, const In<Real, 2>& X, const Doubles2& start,
               int n_threads) {
  TreesView trees = packed_trees(packed, category_start, categories, root);
  trees.value = sized("value", value, packed.shape(0));
  if (first < 0 || first > last || std::cmp_greater(last, root.size()))
    throw std::invalid_argument("first and last must be trees");
  const auto x = rows(X);
  const auto before = sized("start", start, value.shape(1), static_cast<std::size_t>(x.n_rows));
  const auto loop = [&](auto total) {
    std::ranges::copy(before.values(), total.data);
    certree::add_trees(trees, static_cast<std::size_t>(first), static_cast<std::size_t>(last), x,
                       n_threads, total);
  };
  return run(loop, PredictedRows<double>(before.n_rows, x.n_rows));
}

template <class Real>
auto find_leaves(const Packed& packed, const In<std::int64_t, 1>& category_start,
                 const Ints& categories, const In<std::int64_t, 1>& root, const In<Real, 2>& X,
                 int n_threads) {
  const TreesView trees = packed_trees(packed, category_start, categories, root);
  const auto x = rows(X);
  const auto loop = [&](auto leaf) { certree::find_leaves(trees, x, n_threads, leaf); };
  return run(loop, Rows<std::int32_t>(root.size(), x.n_rows));
}

template <class Real>
auto attribute(const Ints& feature, const Doubles& threshold, const Ints& left,
               const Flags& missing_left, const In<std::int64_t, 1>& category_start,
               const Ints& categories, const In<std::int64_t, 1>& root, const Doubles2& value,
               const In<Real, 2>& X, const std::optional<Flags>& both,
               const std::optional<Doubles>& n, int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, missing_left, category_start, categories);
  const TreesView trees = trees_of(nodes, root, value);
  if (both.has_value() != n.has_value())
    throw std::invalid_argument("both and n must be given together");
  const Branches branches{sized("both", both, left.size()), sized("n", n, left.size())};
  const auto x = rows(X);
  const std::size_t width = checked_size(value.shape(1), x.width);
  return run([&](auto part) { certree::attribute(trees, branches, x, n_threads, part); },
             Rows<double>(x.n_rows, width));
}

template <class Real>
void bind_for(nb::module_& core) {
  core.def("add_trees", &add_trees<Real>, "packed"_array, "category_start"_array,
           "categories"_array, "root"_array, "value"_array, "first"_a, "last"_a, "X"_array,
           "start"_array, "n_threads"_a,
           "Scores (n_outputs, n) to which trees first, ..., last - 1 have added.");
  core.def("find_leaves", &find_leaves<Real>, "packed"_array, "category_start"_array,
           "categories"_array, "root"_array, "X"_array, "n_threads"_a,
           "Leaves (n_trees, n) of rows, numbered among all nodes.");
  core.def("attribute", &attribute<Real>, "feature"_array, "threshold"_array, "left"_array,
           "missing_left"_array, "category_start"_array, "categories"_array, "root"_array,
           "value"_array, "X"_array, "both"_array_or_none, "n"_array_or_none, "n_threads"_a,
           "What each feature adds to what the roots say of rows.");
}

}  // namespace

void bind_ensembles(nb::module_& core) {
  core.def("part_rows", &part_rows, "flags"_array,
           "Numbers of the rows that have a flag, and of those that have none.");
  core.def("log_loss_slopes", &log_loss_slopes, "y"_array, "scores"_array, "least"_a,
           "(gradient, hessian) of the log loss of each row by its scores.");
  core.def("round_steps", &round_steps, "left"_array, "leaf"_array, "growing"_array, "others"_array,
           "gradient"_array, "hessian"_array, "shrinkage"_a, "temperature"_a, "curvature"_a,
           "stop"_array, "feature"_array, "slope"_array_or_none,
           "(steps, weight, log evidence) of a tree whose prunings have been weighed.");
  core.def("add_steps", &add_steps, "leaf"_array, "value"_array, "scores"_array,
           "Scores (n_outputs, n) to which the leaf of each row has added its value.");
  core.def("pack_trees", &pack_trees, "feature"_array, "threshold"_array, "left"_array,
           "missing_left"_array, "category_start"_array, "categories"_array,
           "What steps of walks read of each node, in one piece.");
  bind_for<float>(core);
  bind_for<double>(core);
}

}  // namespace certree::door
