// What nodes say of their rows, drawn to what their parents say: one pass down.

#include "stats/stats.hpp"

namespace certree {
namespace {

// value: (m, width) averages over the rows of a node and `smoothing` more like its parent's;
// rows_of(v) and total(v, k) sum over its own rows; above_root(v) stands for a root's parent.
template <class RowsOf, class Total, class AboveRoot>
void smooth(Shape tree, Smoothing smoothing, const RowsOf& rows_of, const Total& total,
            const AboveRoot& above_root, Table<double> value) {
  const double added = smoothing.rows, unit = smoothing.unit();
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size(), value.width)) {
    double* own = value.row(v);  // holds the parent's
    if (roots.is_root(v)) std::fill_n(own, value.width, above_root(v));
    const double n = rows_of(v) / unit + added;
    if (n > 0.0)
      for (std::int64_t k = 0; k < value.width; ++k)
        own[k] = (total(v, k) / unit + added * own[k]) / n;
    if (tree.is_leaf(v)) continue;
    double* child = value.row(tree.left(v));
    std::copy_n(own, value.width, child);
    std::copy_n(own, value.width, child + value.width);
  }
}

}  // namespace

void frequencies(Shape tree, Table<const double> counts, Smoothing smoothing,
                 Table<double> frequency) {
  const std::int64_t n_classes = counts.width;
  const auto rows_of = [&](std::size_t v) {
    return std::accumulate(counts.row(v), counts.row(v) + n_classes, 0.0);
  };
  const auto total = [&](std::size_t v, std::int64_t k) { return counts.row(v)[k]; };
  const auto uniform = [&](std::size_t) { return 1.0 / static_cast<double>(n_classes); };
  smooth(tree, smoothing, rows_of, total, uniform, frequency);
}

void smoothed_means(Shape tree, std::span<const double> rows, std::span<const double> mean,
                    Smoothing smoothing, std::span<double> value) {
  const auto rows_of = [&](std::size_t v) { return rows[v]; };
  const auto total = [&](std::size_t v, std::int64_t) { return rows[v] * mean[v]; };
  const auto m = static_cast<std::int64_t>(tree.size());
  const auto own_mean = [&](std::size_t v) { return mean[v]; };
  smooth(tree, smoothing, rows_of, total, own_mean, {value.data(), m, 1});
}

}  // namespace certree
