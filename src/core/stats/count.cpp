// Class counts and moments by node: sums over the rows of each leaf, then from children to parents.

#include "stats/stats.hpp"

namespace certree {

void count(Shape tree, const RoutedRows& rows, std::span<const std::int32_t> y,
           Table<double> counts) {
  fill(counts.values(), 0.0);
  for (const std::size_t i : indices(rows.size()))
    counts.row(rows.leaf[i])[y[i]] += rows.weight_of(i);
  for (const std::size_t v : indices_down(tree.size(), counts.width)) {
    if (tree.is_leaf(v)) continue;
    const double* l = counts.row(tree.left(v));
    const double* r = l + counts.width;
    for (std::int64_t k = 0; k < counts.width; ++k) counts.row(v)[k] += l[k] + r[k];
  }
}

void moments(Shape tree, const RoutedRows& rows, std::span<const double> target,
             std::span<double> total, std::span<double> mean, std::span<double> squares) {
  for (const auto column : {total, mean, squares}) fill(column, 0.0);
  // A leaf whose targets are all equal gets exactly this mean: the rounding error of sum / weight
  // would look like noise of the target.
  const std::span<double> only = squares;  // the target of a leaf, NaN if targets differ
  constexpr double kDifferent = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t i : indices(rows.size())) {
    const std::size_t leaf = rows.leaf_of(i);
    const double weight = rows.weight_of(i);
    if (weight == 0.0) continue;
    if (total[leaf] == 0.0)
      only[leaf] = target[i];
    else if (only[leaf] != target[i])
      only[leaf] = kDifferent;
    total[leaf] += weight;
    mean[leaf] += weight * target[i];
  }
  for (const std::size_t v : indices(tree.size()))
    if (total[v] > 0.0) mean[v] = std::isnan(only[v]) ? mean[v] / total[v] : only[v] + 0.0;
  fill(squares, 0.0);
  for (const std::size_t i : indices(rows.size())) {
    const double distance = target[i] - mean[rows.leaf_of(i)];
    squares[rows.leaf_of(i)] += rows.weight_of(i) * distance * distance;
  }
  combine_moments(tree, total, mean, squares);
}

void combine_moments(Shape tree, std::span<double> total, std::span<double> mean,
                     std::span<double> squares) {
  for (const std::size_t v : indices_down(tree.size())) {
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v), r = l + 1;
    total[v] = total[l] + total[r];
    if (total[v] == 0.0) continue;
    const double distance = mean[r] - mean[l], fraction = total[r] / total[v];
    mean[v] = mean[l] + distance * fraction;
    squares[v] = squares[l] + squares[r] + distance * distance * total[l] * fraction;
  }
  for (const std::size_t v : indices(tree.size())) {
    if (tree.is_leaf(v)) continue;
    for (const std::size_t child : {tree.left(v), tree.left(v) + 1})
      if (total[child] == 0.0) mean[child] = mean[v];
  }
}

// Class weights whose relative difference is smaller count as tied: sums of the same weights in
// another unit are rounded differently.
constexpr double kRounding = 1e-12;

void majority(Shape tree, const Counts& counts, std::span<std::int32_t> label) {
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size(), counts.classes_per_node())) {
    if (roots.is_root(v)) label[v] = 0;
    double largest = 0.0;
    counts.for_each_class(
        v, [&](std::int64_t, double weight) { largest = std::max(largest, weight); });
    bool is_found = largest == 0.0;
    counts.for_each_class(v, [&](std::int64_t k, double weight) {
      if (is_found || weight < largest * (1 - kRounding)) return;
      is_found = true;
      label[v] = static_cast<std::int32_t>(k);
    });
    if (!tree.is_leaf(v)) label[tree.left(v)] = label[tree.left(v) + 1] = label[v];
  }
}

}  // namespace certree
