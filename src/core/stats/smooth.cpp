// Predictions of nodes, smoothed towards those of their parents: one pass from the roots down.

#include "stats/stats.hpp"

namespace certree {
namespace {

// Fills value, (m, width): the average over the rows of a node and smoothing.rows further rows that
// have the value of its parent. weight_of(v) is the weight of the rows of v, total(v, k) the sum of
// their k-th value, and above_root(v) what roots take for the value of a parent.
template <class WeightOf, class Total, class AboveRoot>
void smooth(Shape tree, Smoothing smoothing, const WeightOf& weight_of, const Total& total,
            const AboveRoot& above_root, Table<double> value) {
  const double added = smoothing.rows, unit = smoothing.unit();
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size(), value.width)) {
    double* node_value = value.row(v);  // so far the parent's
    if (roots.is_root(v)) std::fill_n(node_value, value.width, above_root(v));
    const double n = weight_of(v) / unit + added;
    if (n > 0.0)
      for (std::int64_t k = 0; k < value.width; ++k)
        node_value[k] = (total(v, k) / unit + added * node_value[k]) / n;
    if (tree.is_leaf(v)) continue;
    double* child = value.row(tree.left(v));
    std::copy_n(node_value, value.width, child);
    std::copy_n(node_value, value.width, child + value.width);
  }
}

}  // namespace

void frequencies(Shape tree, Table<const double> counts, Smoothing smoothing,
                 Table<double> frequency) {
  const std::int64_t n_classes = counts.width;
  const auto weight_of = [&](std::size_t v) {
    return std::accumulate(counts.row(v), counts.row(v) + n_classes, 0.0);
  };
  const auto total = [&](std::size_t v, std::int64_t k) { return counts.row(v)[k]; };
  const auto uniform = [&](std::size_t) { return 1.0 / static_cast<double>(n_classes); };
  smooth(tree, smoothing, weight_of, total, uniform, frequency);
}

void smoothed_means(Shape tree, std::span<const double> rows, std::span<const double> mean,
                    Smoothing smoothing, std::span<double> value) {
  const auto weight_of = [&](std::size_t v) { return rows[v]; };
  const auto total = [&](std::size_t v, std::int64_t) { return rows[v] * mean[v]; };
  const auto m = static_cast<std::int64_t>(tree.size());
  const auto root_mean = [&](std::size_t v) { return mean[v]; };
  smooth(tree, smoothing, weight_of, total, root_mean, {value.data(), m, 1});
}

}  // namespace certree
