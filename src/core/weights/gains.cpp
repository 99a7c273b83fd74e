// What splitting a node is worth in each term of a posterior.

#include "weights/weights.hpp"

namespace certree {
namespace {

// loss_gain(v, l, r) and weight_of(v) of node v with children l and r, in so many steps. Both are
// divided by the mean weight of a row once differences have been taken, which are exact where
// weights are integers.
template <class WeightOf, class LossGain>
void law_gains(Shape tree, double weight_unit, bool empty_leaves_count, const WeightOf& weight_of,
               const LossGain& loss_gain, std::int64_t steps, Table<double> gains) {
  for (const std::size_t v : indices(tree.size(), steps)) {
    double* gain = gains.row(v);
    std::fill_n(gain, gains.width, 0.0);
    if (tree.is_leaf(v)) continue;
    const std::size_t l = tree.left(v), r = l + 1;
    const double of_left = weight_of(l), of_right = weight_of(r);
    const double a = of_left / weight_unit, b = of_right / weight_unit;
    const double whole = (of_left + of_right) / weight_unit;
    gain[0] = loss_gain(v, l, r) / weight_unit;
    // sqrt(a) + sqrt(b) - sqrt(a + b), without its cancellation.
    if (whole > 0.0)
      gain[1] =
          2.0 * std::sqrt(a) * std::sqrt(b) / (std::sqrt(a) + std::sqrt(b) + std::sqrt(whole));
    if (gains.width == 3)
      gain[2] = empty_leaves_count ? 1.0 : (a > 0.0) + (b > 0.0) - (whole > 0.0);
  }
}

}  // namespace

void error_gains(Shape tree, const Counts& counts, std::span<const std::int32_t> label,
                 double weight_unit, bool empty_leaves_count, Table<double> gains) {
  const auto weight_of = [&](std::size_t v) { return counts.total(v); };
  const auto errors = [&](std::size_t v) { return weight_of(v) - counts.of(v, label[v]); };
  const auto loss_gain = [&](std::size_t v, std::size_t l, std::size_t r) {
    return errors(l) + errors(r) - errors(v);
  };
  law_gains(tree, weight_unit, empty_leaves_count, weight_of, loss_gain, counts.width(), gains);
}

void squared_gains(Shape tree, std::span<const double> rows, std::span<const double> mean,
                   double unit, double weight_unit, bool empty_leaves_count, Table<double> gains) {
  const auto weight_of = [&](std::size_t v) { return rows[v]; };
  // The difference of the sums of squares, without its cancellation.
  const auto loss_gain = [&](std::size_t, std::size_t l, std::size_t r) {
    const double whole = rows[l] + rows[r], distance = mean[l] - mean[r];
    return whole > 0.0 ? -distance * distance / unit * rows[l] * (rows[r] / whole) : 0.0;
  };
  law_gains(tree, weight_unit, empty_leaves_count, weight_of, loss_gain, 1, gains);
}

}  // namespace certree
