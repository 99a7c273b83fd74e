// Gains of splits: by how much a split changes each term of a posterior.

#include "weights/weights.hpp"

namespace certree {
namespace {

// Fills gains, (m, 2 or 3). loss_gain(v, l, r) is the gain in loss of node v with children l and r,
// and weight_of(v) the weight of its rows. Both are divided by weight_unit only after differences
// have been taken, as differences are exact if weights are integers. steps: about how many steps
// both functions take.
template <class WeightOf, class LossGain>
void family_gains(Shape tree, double weight_unit, bool empty_leaves_count,
                  const WeightOf& weight_of, const LossGain& loss_gain, std::int64_t steps,
                  Table<double> gains) {
  for (const std::size_t v : indices(tree.size(), steps)) {
    double* gain = gains.row(v);
    std::fill_n(gain, gains.width, 0.0);
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v), r = l + 1;
    const double left_weight = weight_of(l), right_weight = weight_of(r);
    const double a = left_weight / weight_unit, b = right_weight / weight_unit;
    const double both = (left_weight + right_weight) / weight_unit;
    gain[0] = loss_gain(v, l, r) / weight_unit;
    // sqrt(a) + sqrt(b) - sqrt(a + b), without its cancellation.
    if (both > 0.0)
      gain[1] = 2.0 * std::sqrt(a) * std::sqrt(b) / (std::sqrt(a) + std::sqrt(b) + std::sqrt(both));
    if (gains.width == 3) gain[2] = empty_leaves_count ? 1.0 : (a > 0.0) + (b > 0.0) - (both > 0.0);
  }
}

}  // namespace

void error_gains(Shape tree, const Counts& counts, std::span<const std::int32_t> label,
                 double weight_unit, bool empty_leaves_count, Table<double> gains) {
  const auto weight_of = [&](std::size_t v) { return counts.total(v); };
  const auto errors = [&](std::size_t v) { return weight_of(v) - counts.weight_of(v, label[v]); };
  const auto loss_gain = [&](std::size_t v, std::size_t l, std::size_t r) {
    return errors(l) + errors(r) - errors(v);
  };
  family_gains(tree, weight_unit, empty_leaves_count, weight_of, loss_gain,
               counts.classes_per_node(), gains);
}

void squared_gains(Shape tree, std::span<const double> rows, std::span<const double> mean,
                   double unit, double weight_unit, bool empty_leaves_count, Table<double> gains) {
  const auto weight_of = [&](std::size_t v) { return rows[v]; };
  // The difference of the sums of squares, without its cancellation.
  const auto loss_gain = [&](std::size_t, std::size_t l, std::size_t r) {
    const double both = rows[l] + rows[r], distance = mean[l] - mean[r];
    return both > 0.0 ? -distance * distance / unit * rows[l] * (rows[r] / both) : 0.0;
  };
  family_gains(tree, weight_unit, empty_leaves_count, weight_of, loss_gain, 1, gains);
}

}  // namespace certree
