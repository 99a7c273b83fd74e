// Python bindings of explanations.
#include "bind_packed.hpp"
#include "explain/interactions.hpp"
#include "explain/shapley.hpp"

namespace certree::bindings {
namespace {

template <class Real>
auto values_of_features(const Ints& feature, const Doubles& threshold, const Ints& left,
                        const Flags& default_left, const In<std::int64_t, 1>& category_start,
                        const Ints& categories, const Roots& root, const Doubles2& value,
                        const In<Real, 2>& X, const std::optional<In<Real, 2>>& background,
                        const std::optional<Flags>& both, const std::optional<Doubles>& n,
                        const Doubles& point, const Doubles& weight, int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, default_left, category_start, categories);
  const TreesView trees{nodes, view(root), sized("value", value, left.size()), {}};
  const MissingRouting missing{sized("both", both, left.size()), sized("n", n, left.size())};
  if (!n && (both || !background))
    throw std::invalid_argument("n must be given with both, and without a background");
  const Mixture mixture{view(point), sized("weight", weight, point.size())};
  const auto x = rows(X);
  Table<const Real> background_rows;
  if (background) {
    background_rows = sized("background", *background, background->shape(0), X.shape(1));
    if (background_rows.n_rows == 0) throw std::invalid_argument("background has no rows");
  }
  const std::size_t width = checked_size(value.shape(1), x.width);
  const auto loop = [&](auto attribution) {
    if (background)
      values_by_background(trees, missing, x, background_rows, mixture, n_threads, attribution);
    else
      values_by_cover(trees, missing, x, mixture, n_threads, attribution);
  };
  return run(loop, Rows<double>(x.n_rows, width));
}

auto interactions(const Ints& feature, const Doubles& threshold, const Ints& left,
                  const Flags& default_left, const In<std::int64_t, 1>& category_start,
                  const Ints& categories, const Roots& root, const Doubles2& value,
                  const std::optional<Flags>& both, const std::optional<Doubles>& n,
                  const Doubles2& bin_values, const Doubles2& mass,
                  const In<std::int32_t, 2>& draws, bool wants_total, int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, default_left, category_start, categories);
  const TreesView trees{nodes, view(root), sized("value", value, left.size()), {}};
  const MissingRouting missing{sized("both", both, left.size()), sized("n", n, left.size())};
  if (both && !n) throw std::invalid_argument("n must be given with both");
  const std::size_t p = bin_values.shape(1);
  const FeatureBins bins{view(bin_values), sized("mass", mass, bin_values.shape(0), p)};
  const auto drawn = sized("draws", draws, draws.shape(0), p);
  expect_codes("draws", drawn.values(), bins.probability.n_rows);
  for (std::int64_t i = 0; i < drawn.n_rows; ++i)
    for (std::size_t j = 0; j < p; ++j)
      if (!(bins.probability.row(drawn.row(i)[j])[j] > 0.0))
        throw std::invalid_argument("draws must be bins that have a mass");
  Interactions result;
  auto [single, fitted] = run(
      [&](auto single_variance, auto fitted_values) {
        result = certree::interactions(trees, missing, bins, drawn, wants_total, n_threads,
                                       single_variance, fitted_values);
      },
      Column<double>(p), Rows<double>(drawn.n_rows, value.shape(1)));
  return std::tuple(single, owned(std::move(result.first)), owned(std::move(result.second)),
                    owned(std::move(result.variance)), fitted, result.total);
}

template <class Real>
void bind_explain_of(nb::module_& core) {
  core.def(
      "compute_feature_values", &values_of_features<Real>, "feature"_array, "threshold"_array,
      "left"_array, "default_left"_array, "category_start"_array, "categories"_array, "root"_array,
      "value"_array, "X"_array, "background"_array_or_none, "both"_array_or_none, "n"_array_or_none,
      "point"_array, "weight"_array, "n_threads"_a,
      "Return the Shapley values of features, (n_rows, n_outputs * p), or other averages over "
      "coalitions by the quadrature (point, weight). n: weights of nodes, for unknown features "
      "without a background, or for nodes in both, where missing values go both ways.");
}

}  // namespace

void bind_explain(nb::module_& core) {
  core.def(
      "analyse_interactions", &interactions, "feature"_array, "threshold"_array, "left"_array,
      "default_left"_array, "category_start"_array, "categories"_array, "root"_array, "value"_array,
      "both"_array_or_none, "n"_array_or_none, "bin_values"_array, "mass"_array, "draws"_array,
      "wants_total"_a, "n_threads"_a,
      "Analyse the variance of summed trees by independent features, each with bins of values "
      "(bin_values) and probabilities (mass). Return the variances of single features, the first "
      "and second features of pairs, the variances of pairs, the mean plus these components at "
      "draws, and the total variance.");
  bind_explain_of<float>(core);
  bind_explain_of<double>(core);
}

}  // namespace certree::bindings
