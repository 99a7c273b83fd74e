// One pass down: every node hands its vote, or the bounds of its values, on to its children.
#include "votes.hpp"

namespace certree {

void push_down(Shape tree, std::span<const double> weight, const Values& values,
               Table<double> score) {
  const std::int64_t n_classes = score.width;
  const double* const frequency = values.frequency.data;
  std::fill_n(score.data, n_classes, 0.0);
  for (const std::size_t v : turns(tree.size(), n_classes)) {
    const double own = weight[v];
    double* row = score.row(v);  // holds what comes from above
    if (frequency) {
      const double* value = frequency + static_cast<std::int64_t>(v) * n_classes;
      for (std::int64_t k = 0; k < n_classes; ++k) row[k] += own * value[k];
    } else {
      row[values.label[v]] += own;
    }
    if (tree.is_leaf(v)) continue;
    double* child = score.row(tree.left(v));
    std::copy_n(row, n_classes, child);
    std::copy_n(row, n_classes, child + n_classes);
  }
}

void make_monotone(Shape tree, std::span<const std::int32_t> feature,
                   std::span<const std::int8_t> slope, std::span<const double> value,
                   std::span<double> moved) {
  struct Bounds {
    double low, high;
  };
  std::ranges::copy(value, moved.begin());
  const auto bounds = make_buffer<Bounds>(tree.size());
  bounds[0] = {-kInfinity, kInfinity};
  for (const std::size_t v : turns(tree.size())) {
    if (tree.is_leaf(v)) continue;
    const Bounds own = bounds[v];
    const std::int8_t sign = slope[static_cast<std::size_t>(feature[v])];
    const std::size_t lower = tree.left(v) + (sign < 0), upper = tree.left(v) + (sign >= 0);
    for (const std::size_t child : {lower, upper})
      moved[child] = std::clamp(moved[child], own.low, own.high);
    const double middle = moved[lower] * 0.5 + moved[upper] * 0.5;
    if (sign != 0 && moved[lower] > moved[upper]) moved[lower] = moved[upper] = middle;
    bounds[lower] = {own.low, sign != 0 ? middle : own.high};
    bounds[upper] = {sign != 0 ? middle : own.low, own.high};
  }
}

}  // namespace certree
