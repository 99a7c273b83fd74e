// Python bindings of the leaves of forests.
#include "bind_bins.hpp"
#include "bind_packed.hpp"
#include "ensembles/forest_leaves.hpp"

namespace certree::bindings {
namespace {

using Ints2 = In<std::int32_t, 2>;

Arrivals arrivals_of(const Ints& left, const Roots& root, const Ints2& leaf) {
  const Arrivals arrivals{shape(left).children, roots_of(root, left.size()),
                          sized("leaf", leaf, root.size())};
  const auto m = static_cast<std::int32_t>(left.size());
  unsigned beyond = 0;
  for (const std::int32_t v : arrivals.leaf.values()) beyond |= (v < -m) | (v >= m);
  if (beyond) throw std::invalid_argument("leaf must hold nodes or their complements");
  return arrivals;
}

LeafTargets targets_of(const Ints2& leaf, const Doubles2& y, const std::optional<Doubles>& weight,
                       const Roots& n_lanes) {
  const std::size_t n = leaf.shape(1);
  const LeafTargets targets{sized("y", y, n), sized("weight", weight, n),
                            sized("n_lanes", n_lanes, y.shape(1))};
  for (std::size_t k = 0; k < targets.n_lanes.size(); ++k) {
    const std::int64_t most = targets.n_lanes[k];
    if (most < 1) throw std::invalid_argument("n_lanes must be at least 1");
    if (most == 1) continue;
    for (std::int64_t i = 0; i < targets.y.n_rows; ++i)
      if (const double c = targets.y.row(i)[k]; !(c >= 0 && c < static_cast<double>(most)))
        throw std::invalid_argument("y must hold classes");
  }
  return targets;
}

std::int64_t width_of(const LeafTargets& targets) {
  return std::accumulate(targets.n_lanes.begin(), targets.n_lanes.end(), std::int64_t{0});
}

template <class Real>
auto find_out_of_bag(const Packed& packed, const In<std::int64_t, 1>& category_start,
                     const Ints& categories, const Roots& root, const In<Real, 2>& X,
                     const Draws& draws, int n_threads) {
  const TreesView trees = packed_trees(packed, category_start, categories, root);
  const auto x = rows(X);
  const Drawing drawing = drawing_of(draws, X.shape(0));
  const auto loop = [&](auto leaf) {
    certree::find_out_of_bag(trees, drawing, x, n_threads, leaf);
  };
  return run(loop, Rows<std::int32_t>(root.size(), x.n_rows));
}

auto sum_leaves(const Ints& left, const Roots& root, const Ints2& leaf, const Doubles2& y,
                const std::optional<Doubles>& weight, const Roots& n_lanes, int n_threads) {
  const Arrivals arrivals = arrivals_of(left, root, leaf);
  const LeafTargets targets = targets_of(leaf, y, weight, n_lanes);
  const auto loop = [&](auto sums) { certree::sum_leaves(arrivals, targets, n_threads, sums); };
  return run(loop, Rows<double>(left.size(), width_of(targets) + 1));
}

// A weight and at least one sum for each node.
Table<const double> sums_of(const Doubles2& sums, std::size_t n_nodes) {
  const auto table = sized("sums", sums, n_nodes);
  if (table.width < 2) throw std::invalid_argument("sums must have two columns at least");
  return table;
}

auto shrink_leaves(const Ints& left, const Roots& root, const Doubles2& sums, double rows,
                   int n_threads) {
  const Shape nodes = shape(left);
  const auto roots = roots_of(root, nodes.size());
  const auto table = sums_of(sums, left.size());
  const auto loop = [&](auto value) {
    certree::shrink_leaves(nodes.children, roots, table, rows, n_threads, value);
  };
  return run(loop, Rows<double>(left.size(), table.width - 1));
}

auto average_leaves(const Ints& left, const Doubles& rows, const Doubles2& value) {
  const Shape nodes = shape(left);
  const auto weights = sized("rows", rows, nodes.size());
  const auto said = sized("value", value, nodes.size());
  const auto loop = [&](auto mean) {
    certree::average_leaves(nodes.children, weights, said, mean);
  };
  return run(loop, Rows<double>(nodes.size(), said.width));
}

auto sum_out_of_bag_predictions(const Ints& left, const Roots& root, const Ints2& leaf,
                                const Doubles2& y, const std::optional<Doubles>& weight,
                                const Roots& n_lanes, const Doubles2& sums, bool knows, double rows,
                                std::int64_t n_scored, int n_threads) {
  const Arrivals arrivals = arrivals_of(left, root, leaf);
  const auto table = sums_of(sums, left.size());
  const LeafTargets targets = targets_of(leaf, y, weight, n_lanes);
  if (width_of(targets) != table.width - 1)
    throw std::invalid_argument("sums must have a column for each lane");
  if (n_scored < 0 || std::cmp_greater(n_scored, y.shape(0)))
    throw std::invalid_argument("n_scored must be a number of rows");
  const auto loop = [&](auto total, auto n_trees) {
    certree::sum_out_of_bag_predictions(arrivals, targets, table, knows, rows, n_threads, total,
                                        n_trees);
  };
  return run(loop, Rows<double>(n_scored, table.width - 1), Column<std::int32_t>(n_scored));
}

template <class Real>
void bind_forest_leaves_of(nb::module_& core) {
  core.def("find_out_of_bag", &find_out_of_bag<Real>, "packed"_array, "category_start"_array,
           "categories"_array, "root"_array, "X"_array, "draws"_a, "n_threads"_a,
           "Complements of leaves (n_trees, n) of rows out of bags; 0 for those in them.");
}

}  // namespace

void bind_forest_leaves(nb::module_& core) {
  bind_forest_leaves_of<float>(core);
  bind_forest_leaves_of<double>(core);
  core.def("sum_out_of_bag_targets", &sum_leaves, "left"_array, "root"_array, "leaf"_array,
           "y"_array, "weight"_array_or_none, "n_lanes"_array, "n_threads"_a,
           "Weight and sums of the rows out of bags, by node.");
  core.def("shrink_leaves", &shrink_leaves, "left"_array, "root"_array, "sums"_array, "rows"_a,
           "n_threads"_a, "Means of nodes, drawn to those of their parents by so many rows.");
  core.def("average_leaves", &average_leaves, "left"_array, "rows"_array, "value"_array,
           "Values of leaves, and at other nodes the means of those below by their rows.");
  core.def("sum_out_of_bag_predictions", &sum_out_of_bag_predictions, "left"_array, "root"_array,
           "leaf"_array, "y"_array, "weight"_array_or_none, "n_lanes"_array, "sums"_array,
           "knows"_a, "rows"_a, "n_scored"_a, "n_threads"_a,
           "What trees say of rows out of their bags, added up, and how many do.");
}

}  // namespace certree::bindings
