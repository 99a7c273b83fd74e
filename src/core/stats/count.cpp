// What is in the nodes: summed in the leaves, then from the children up.

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
  // The mean of equal targets is what they are, else the rounding of a sum would pass for noise.
  const std::span<double> only = squares;  // the one target of a leaf, NaN if there are several
  constexpr double kSeveral = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t i : indices(rows.size())) {
    const std::size_t leaf = rows.leaf_of(i);
    const double weight = rows.weight_of(i);
    if (weight == 0.0) continue;
    if (total[leaf] == 0.0)
      only[leaf] = target[i];
    else if (only[leaf] != target[i])
      only[leaf] = kSeveral;
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
  gather_moments(tree, total, mean, squares);
}

void gather_moments(Shape tree, std::span<double> total, std::span<double> mean,
                    std::span<double> squares) {
  for (const std::size_t v : indices_down(tree.size())) {
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v), r = l + 1;
    total[v] = total[l] + total[r];
    if (total[v] == 0.0) continue;
    const double distance = mean[r] - mean[l], share = total[r] / total[v];
    mean[v] = mean[l] + distance * share;
    squares[v] = squares[l] + squares[r] + distance * distance * total[l] * share;
  }
  for (const std::size_t v : indices(tree.size())) {
    if (tree.is_leaf(v)) continue;
    for (const std::size_t child : {tree.left(v), tree.left(v) + 1})
      if (total[child] == 0.0) mean[child] = mean[v];
  }
}

// Weights of classes that differ by less are equal: sums of weights in another unit round
// otherwise.
constexpr double kRounding = 1e-12;

void majority(Shape tree, const Counts& counts, std::span<std::int32_t> label) {
  RootFinder roots(tree);
  for (const std::size_t v : indices(tree.size(), counts.width())) {
    if (roots.is_root(v)) label[v] = 0;
    double largest = 0.0;
    counts.each(v, [&](std::int64_t, double weight) { largest = std::max(largest, weight); });
    bool is_found = largest == 0.0;
    counts.each(v, [&](std::int64_t k, double weight) {
      if (is_found || weight < largest * (1 - kRounding)) return;
      is_found = true;
      label[v] = static_cast<std::int32_t>(k);
    });
    if (!tree.is_leaf(v)) label[tree.left(v)] = label[tree.left(v) + 1] = label[v];
  }
}

}  // namespace certree
