// The doors of the explanations.
#include "bind_packed.hpp"
#include "explain/shapley.hpp"

namespace certree::door {
namespace {

template <class Real>
auto values_of_features(const Ints& feature, const Doubles& threshold, const Ints& left,
                        const Flags& missing_left, const In<std::int64_t, 1>& category_start,
                        const Ints& categories, const Roots& root, const Doubles2& value,
                        const In<Real, 2>& X, const std::optional<In<Real, 2>>& background,
                        const std::optional<Flags>& both, const std::optional<Doubles>& n,
                        const Doubles& point, const Doubles& weight, int n_threads) {
  const auto nodes = tree_of(feature, threshold, left, missing_left, category_start, categories);
  const TreesView trees{nodes, view(root), sized("value", value, left.size()), {}};
  const Branches branches{sized("both", both, left.size()), sized("n", n, left.size())};
  if (!n && (both || !background))
    throw std::invalid_argument("n must be given with both, and without a background");
  const Mixture mixture{view(point), sized("weight", weight, point.size())};
  const auto x = rows(X);
  Table<const Real> others;
  if (background) {
    others = sized("background", *background, background->shape(0), X.shape(1));
    if (others.n_rows == 0) throw std::invalid_argument("background has no rows");
  }
  const std::size_t width = checked_size(value.shape(1), x.width);
  const auto loop = [&](auto part) {
    if (background)
      values_by_background(trees, branches, x, others, mixture, n_threads, part);
    else
      values_by_cover(trees, branches, x, mixture, n_threads, part);
  };
  return run(loop, Rows<double>(x.n_rows, width));
}

template <class Real>
void bind_for(nb::module_& core) {
  core.def("values_of_features", &values_of_features<Real>, "feature"_array, "threshold"_array,
           "left"_array, "missing_left"_array, "category_start"_array, "categories"_array,
           "root"_array, "value"_array, "X"_array, "background"_array_or_none, "both"_array_or_none,
           "n"_array_or_none, "point"_array, "weight"_array, "n_threads"_a,
           "Shapley's values of features (n_rows, n_outputs * p), or others by their mixture.");
}

}  // namespace

void bind_explain(nb::module_& core) {
  bind_for<float>(core);
  bind_for<double>(core);
}

}  // namespace certree::door
