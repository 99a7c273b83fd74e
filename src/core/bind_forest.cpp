// The doors of growth of forests.
#include "bind_bins.hpp"
#include "bind_draws.hpp"

namespace certree::door {
namespace {

// first, n_trees, max_features, max_features_of_tree, random_cuts, max_depth, min_rows, min_split,
// min_decrease.
using Limits = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, bool,
                          std::int32_t, std::int64_t, std::int64_t, double>;

ForestGrowth growth_of(const Limits& limits, int n_threads) {
  const auto [first, n_trees, max_features, max_of_tree, random_cuts, max_depth, min_rows,
              min_split, min_decrease] = limits;
  if (n_trees < 0 || first < 0) throw std::invalid_argument("trees are numbered from 0");
  return {first,        n_trees,   max_features, std::max<std::int64_t>(max_of_tree, 1),
          random_cuts,  max_depth, min_rows,     std::max<std::int64_t>(min_split, 2),
          min_decrease, n_threads};
}

ForestRows rows_of(const Codes& codes, const Kept& kept, const std::optional<Doubles>& weight) {
  if (codes.shape(0) == 0 || codes.shape(0) > 2147483647u)
    throw std::invalid_argument("codes must have between 1 and 2147483647 rows");
  return {kept_bins(kept, codes.shape(1)), view(codes), sized("weight", weight, codes.shape(0))};
}

// The columns of the nodes of all trees, where each starts, and what their rows sum up to.
template <class Grow>
auto grown(const Grow& grow) {
  ForestColumns forest;
  run([&] { forest = grow(); });
  TreeColumns& nodes = forest.nodes;
  NodeSums& sums = forest.sums;
  return std::tuple(std::tuple(owned(std::move(nodes.feature)), owned(std::move(nodes.threshold)),
                               owned(std::move(nodes.left)), owned(std::move(nodes.missing_left)),
                               owned(std::move(nodes.category_start)),
                               owned(std::move(nodes.categories)), owned(std::move(forest.root))),
                    owned(std::move(sums.begin)), owned(std::move(sums.lane)),
                    owned(std::move(sums.sum)));
}

auto grow_class_forest(const Codes& codes, const Kept& kept, const std::optional<Doubles>& weight,
                       const Ints& y, std::int32_t n_classes, const std::string& criterion,
                       const Draws& draws, const Limits& limits, int n_threads) {
  const ForestRows rows = rows_of(codes, kept, weight);
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  const ForestClasses response{sized("y", y, codes.shape(0)), n_classes, criterion_of(criterion)};
  expect_codes("y", response.y, n_classes);
  const ForestSampling sampling = sampling_of(draws, codes.shape(0));
  const ForestGrowth growth = growth_of(limits, n_threads);
  return grown([&] { return grow_forest(rows, sampling, growth, response); });
}

auto grow_number_forest(const Codes& codes, const Kept& kept, const std::optional<Doubles>& weight,
                        const Doubles& target, const Draws& draws, const Limits& limits,
                        int n_threads) {
  const ForestRows rows = rows_of(codes, kept, weight);
  const auto numbers = sized("target", target, codes.shape(0));
  const ForestSampling sampling = sampling_of(draws, codes.shape(0));
  const ForestGrowth growth = growth_of(limits, n_threads);
  return grown([&] { return grow_forest(rows, sampling, growth, numbers); });
}

auto draw_rows(std::int64_t n_rows, const Draws& draws, std::int64_t tree) {
  if (n_rows < 1) throw std::invalid_argument("at least one row is needed");
  const ForestSampling sampling = sampling_of(draws, static_cast<std::size_t>(n_rows));
  const auto loop = [&](std::span<std::int32_t> count) {
    certree::draw_rows(sampling, tree, count);
  };
  return run(loop, Column<std::int32_t>(n_rows));
}

}  // namespace

void bind_forest(nb::module_& core) {
  core.def("grow_class_forest", &grow_class_forest, "codes"_array, "kept"_a, "weight"_array_or_none,
           "y"_array, "n_classes"_a, "criterion"_a, "draws"_a, "limits"_a, "n_threads"_a,
           "Columns of trees on classes, and weights of classes by node.");
  core.def("grow_number_forest", &grow_number_forest, "codes"_array, "kept"_a,
           "weight"_array_or_none, "target"_array, "draws"_a, "limits"_a, "n_threads"_a,
           "Columns of trees on numbers, and the weight and the sum of every node.");
  core.def("draw_rows", &draw_rows, "n_rows"_a, "draws"_a, "tree"_a,
           "How often each row was drawn for a tree.");
}

}  // namespace certree::door
