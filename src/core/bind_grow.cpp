// Python bindings of growers that compare values, not bins.
#include "bind.hpp"
#include "grow/grow.hpp"

namespace certree::bindings {
namespace {

using Codes = std::optional<Ints>;
using Numbers = std::optional<Doubles>;
using CodeRows = std::optional<In<std::int32_t, 2>>;
using NumberRows = std::optional<Doubles2>;
using Flags = std::optional<In<std::uint8_t, 1>>;
using MonotonicSigns = std::optional<In<std::int8_t, 1>>;
using Orders = In<std::uint32_t, 2>;  // ranks and rows take turns

// feature, threshold, left, chain, default_left, category_start (may be empty), categories, and
// whether every split is the best of its node (None: nothing was maximised).
auto columns(TreeColumns&& tree, std::optional<bool> optimal = std::nullopt) {
  return std::tuple(owned(std::move(tree.feature)), owned(std::move(tree.threshold)),
                    owned(std::move(tree.left)), owned(std::move(tree.chain)),
                    owned(std::move(tree.default_left)), owned(std::move(tree.category_start)),
                    owned(std::move(tree.categories)), optimal);
}

template <class Real>
Stopping stopping(const In<Real, 2>& X, const Codes& y, const Numbers& weight,
                  double min_samples_split, int max_depth) {
  if (X.shape(0) == 0 || X.shape(1) == 0) throw std::invalid_argument("X is empty");
  const auto classes = sized("y", y, X.shape(0));
  return {min_samples_split, max_depth, classes, sized("weight", weight, X.shape(0))};
}

template <class Real>
auto grow_dyadic(const In<Real, 2>& X, const Codes& y, double min_samples_split, int max_depth,
                 bool expand, int n_threads) {
  const auto rule = stopping(X, y, {}, min_samples_split, max_depth);
  const auto x = rows(X);
  return columns(run([&] { return certree::grow_dyadic(x, rule, expand, n_threads); }));
}

template <class Real>
auto grow_kd(const In<Real, 2>& X, const Codes& y, const Numbers& weight, double min_samples_split,
             int max_depth, bool spread, int n_threads) {
  const auto rule = stopping(X, y, weight, min_samples_split, max_depth);
  const auto x = rows(X);
  const Axis axis = spread ? Axis::spread : Axis::cycle;
  return columns(run([&] { return certree::grow_kd(x, rule, axis, n_threads); }));
}

// Number of features that hold no categories.
std::size_t n_numbers(std::span<const std::uint8_t> category, std::size_t n_features) {
  if (category.empty()) return n_features;
  return static_cast<std::size_t>(std::ranges::count(category, std::uint8_t{0}));
}

template <class Real>
auto rank_rows(const In<Real, 2>& X, const Flags& category, int n_threads) {
  const auto categorical = sized("category", category, X.shape(1));
  const auto x = rows(X);
  const auto loop = [&](Table<std::uint32_t> order) {
    auto* const ranked = reinterpret_cast<RankedRow*>(order.data);
    certree::rank_rows(x, categorical, n_threads, {ranked, order.n_rows, x.n_rows});
  };
  return run(loop, Rows<std::uint32_t>(n_numbers(categorical, X.shape(1)), 2 * X.shape(0)));
}

Ranked ranked(const std::optional<Orders>& order, const Codes& place, std::size_t n_rows,
              std::size_t n_features) {
  if (!order || !place) return {};
  expect_length("order", order->shape(0), n_features);
  expect_length("order's row", order->shape(1), 2 * place->size());
  std::size_t n = 0;
  for (const std::int32_t at : view(*place))
    if (at != -1 && at != static_cast<std::int32_t>(n++))
      throw std::invalid_argument("place must count up from 0");
  expect_length("place", n, n_rows);
  const Table<const RankedRow> lists{reinterpret_cast<const RankedRow*>(order->data()),
                                     static_cast<std::int64_t>(n_features),
                                     static_cast<std::int64_t>(place->size())};
  if (std::ranges::any_of(lists.values(),
                          [&](const RankedRow& r) { return r.row >= place->size(); }))
    throw std::invalid_argument("order must hold rows of place");
  return {lists, view(*place)};
}

Criterion criterion_of(const std::string& name) {
  if (name == "gini") return Criterion::gini;
  if (name == "entropy") return Criterion::entropy;
  if (name == "misclassification") return Criterion::misclassification;
  if (name == "squared") return Criterion::squared;
  if (name == "absolute") return Criterion::absolute;
  if (name == "poisson") return Criterion::poisson;
  throw std::invalid_argument("unknown criterion \"" + name + "\"");
}

// y holds classes, or target numbers, a row for each response; the other one is None.
Response response(std::size_t n_rows, const CodeRows& y, const NumberRows& target,
                  std::int32_t n_classes, const std::string& criterion) {
  Response answer{criterion_of(criterion), {}, n_classes, {}};
  if (is_of_numbers(answer.criterion)) {
    if (!target) throw std::invalid_argument("criterion \"" + criterion + "\" takes a target");
    answer.target = sized("target", *target, target->shape(0), n_rows);
  } else {
    if (!y) throw std::invalid_argument("criterion \"" + criterion + "\" takes classes y");
    answer.y = sized("y", *y, y->shape(0), n_rows);
    expect_codes("y", answer.y.values(), n_classes);
  }
  if (answer.n_responses() < 1) throw std::invalid_argument("y is empty");
  if (answer.n_responses() > 1 && !answer.is_summed())
    throw std::invalid_argument("criterion \"" + criterion + "\" takes one response");
  return answer;
}

template <class Real>
auto grow_cart(const In<Real, 2>& X, const CodeRows& y, const NumberRows& target,
               std::int32_t n_classes, const std::string& criterion, const Numbers& weight,
               double min_samples_split, int max_depth, double min_gain, double min_leaf_rows,
               double min_leaf_weight, std::int64_t max_leaves, std::int64_t max_features,
               bool random_splits, std::uint64_t key, const Flags& category,
               const MonotonicSigns& monotonic, const Codes& feature_order,
               const std::optional<Orders>& order, const Codes& place, int n_threads) {
  const auto rule = stopping(X, {}, weight, min_samples_split, max_depth);
  const auto answer = response(X.shape(0), y, target, n_classes, criterion);
  const auto signs = sized("monotonic", monotonic, X.shape(1));
  if (monotonic && answer.n_responses() > 1)
    throw std::invalid_argument("monotonic takes one response");
  if (monotonic && y && n_classes != 2)
    throw std::invalid_argument("monotonic takes a target or two classes, got " +
                                std::to_string(n_classes) + " classes");
  const auto categorical = sized("category", category, X.shape(1));
  const auto given = ranked(order, place, X.shape(0), n_numbers(categorical, X.shape(1)));
  if (max_features < 1) throw std::invalid_argument("max_features must be at least 1");
  const FeatureOrder features_in_order = order_of_features(feature_order, X.shape(1));
  const Greedy greedy{min_gain,      min_leaf_rows, min_leaf_weight, max_leaves, max_features,
                      random_splits, key,           categorical,     signs,      features_in_order};
  const auto x = rows(X);
  auto tree = run([&] { return certree::grow_cart(x, given, answer, rule, greedy, n_threads); });
  const bool optimal = !tree.heuristic;
  return columns(std::move(tree), optimal);
}

template <class Real>
void bind_grow_of(nb::module_& core) {
  core.def("grow_dyadic", &grow_dyadic<Real>, "X"_array, "y"_array_or_none, "min_samples_split"_a,
           "max_depth"_a, "expand"_a, "n_threads"_a,
           "Columns of the dyadic tree over the rows of X.");
  core.def("grow_kd", &grow_kd<Real>, "X"_array, "y"_array_or_none, "weight"_array_or_none,
           "min_samples_split"_a, "max_depth"_a, "spread"_a, "n_threads"_a,
           "Columns of the median tree over the rows of X.");
  core.def("grow_cart", &grow_cart<Real>, "X"_array, "y"_array_or_none, "target"_array_or_none,
           "n_classes"_a, "criterion"_a, "weight"_array_or_none, "min_samples_split"_a,
           "max_depth"_a, "min_gain"_a, "min_leaf_rows"_a, "min_leaf_weight"_a, "max_leaves"_a,
           "max_features"_a, "random_splits"_a, "key"_a, "category"_array_or_none,
           "monotonic"_array_or_none, "feature_order"_array_or_none, "order"_array_or_none,
           "place"_array_or_none, "n_threads"_a,
           "Columns of the greedy tree over the rows of X, which may be some of those ranked.");
  core.def("rank_rows", &rank_rows<Real>, "X"_array, "category"_array_or_none, "n_threads"_a,
           "Rows in the order of each feature of numbers: their ranks and numbers take turns.");
}

}  // namespace

void bind_grow(nb::module_& core) {
  bind_grow_of<float>(core);
  bind_grow_of<double>(core);
}

}  // namespace certree::bindings
