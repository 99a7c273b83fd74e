// Arrays in, new arrays out: the only file of the core that knows Python.
//
// The array type of a parameter is its check (dtype, rank, order; nothing is converted). What would
// read out of bounds is checked here, what makes columns a tree is checked once, by certree.Tree.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "buffer.hpp"
#include "core.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, int rank>
using In = nb::ndarray<const T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
using Ints = In<std::int32_t, 1>;
using Longs = In<std::int64_t, 1>;
using Bytes = In<std::uint8_t, 1>;
using Signs = In<std::int8_t, 1>;
using Doubles = In<double, 1>;
using Table = In<double, 2>;

template <class T>
using Out1 = nb::ndarray<nb::numpy, const T, nb::ndim<1>>;
template <class T>
using Out2 = nb::ndarray<nb::numpy, const T, nb::ndim<2>>;
// feature, threshold, left, chain, missing_left, category_start (may be empty), categories, and
// whether every split is the best of its cell (None: nothing was maximised).
using Columns =
    std::tuple<Out1<std::int32_t>, Out1<double>, Out1<std::int32_t>, Out1<std::int32_t>,
               Out1<std::uint8_t>, Out1<std::int64_t>, Out1<std::int32_t>, std::optional<bool>>;

// -- results own their memory and are read-only
// ----------------------------------------------------------------------

// An array of the core's own making: filled once, then handed over.
template <class T>
class Result {
 public:
  explicit Result(std::size_t n_rows, std::size_t n_columns = 1)
      : data_(certree::make_buffer<T>(static_cast<std::int64_t>(n_rows * n_columns))),
        n_rows_(n_rows),
        n_columns_(n_columns) {}

  T* data() { return data_.get(); }
  void fill(T value) { std::fill_n(data_.get(), n_rows_ * n_columns_, value); }
  Out1<T> column() && {
    T* data = data_.release();
    return Out1<T>(data, {n_rows_}, owner(data));
  }
  Out2<T> table() && {
    T* data = data_.release();
    return Out2<T>(data, {n_rows_, n_columns_}, owner(data));
  }

 private:
  static nb::capsule owner(T* data) {
    return nb::capsule(data, [](void* p) noexcept { certree::Free()(p); });
  }
  certree::Buffer<T> data_;
  std::size_t n_rows_, n_columns_;
};

template <class T>
Out1<T> owned(std::vector<T>&& values) {
  auto* heap = new std::vector<T>(std::move(values));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out1<T>(heap->data(), {heap->size()}, owner);
}

// -- checks
// ----------------------------------------------------------------------------------------

void expect_length(const char* name, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) +
                                ", expected " + std::to_string(expected));
}

void expect_codes(const char* name, const Ints& codes, std::int64_t n_codes) {
  const auto* end = codes.data() + codes.size();
  if (std::any_of(codes.data(), end, [&](std::int32_t c) { return c < 0 || c >= n_codes; }))
    throw std::invalid_argument(std::string(name) + " must lie in 0 .. " +
                                std::to_string(n_codes - 1));
}

std::int32_t node_count(const Ints& left) {
  if (left.size() == 0 || left.size() > 2147483647u)
    throw std::invalid_argument("a tree has between 1 and 2147483647 nodes, got " +
                                std::to_string(left.size()));
  const auto m = static_cast<std::int32_t>(left.size());
  for (std::int32_t v = 0; v < m; ++v) {
    const std::int32_t child = left.data()[v];
    if (child != certree::kLeaf && (child <= v || child >= m - 1))
      throw std::invalid_argument("left[" + std::to_string(v) + "] = " + std::to_string(child) +
                                  " is neither -1 nor a node after its parent with a sibling");
  }
  return m;
}

template <class Real>
certree::Matrix<Real> matrix(const In<Real, 2>& X) {
  if (X.shape(0) > 2147483647u) throw std::invalid_argument("X has more than 2147483647 rows");
  return {X.data(), static_cast<std::int64_t>(X.shape(0)), static_cast<std::int64_t>(X.shape(1))};
}

// -- growing
// ---------------------------------------------------------------------------------------

Columns columns(certree::TreeColumns&& tree, std::optional<bool> optimal = std::nullopt) {
  return {owned(std::move(tree.feature)),      owned(std::move(tree.threshold)),
          owned(std::move(tree.left)),         owned(std::move(tree.chain)),
          owned(std::move(tree.missing_left)), owned(std::move(tree.category_start)),
          owned(std::move(tree.categories)),   optimal};
}

template <class Real>
certree::Stopping stopping(const In<Real, 2>& X, const std::optional<Ints>& y,
                           const std::optional<Doubles>& weight, double min_rows, int max_depth) {
  if (X.shape(0) == 0 || X.shape(1) == 0) throw std::invalid_argument("X is empty");
  if (y) expect_length("y", y->size(), X.shape(0));
  if (weight) expect_length("weight", weight->size(), X.shape(0));
  return {min_rows, max_depth, y ? y->data() : nullptr, weight ? weight->data() : nullptr};
}

template <class Real>
Columns grow_dyadic(const In<Real, 2>& X, const std::optional<Ints>& y,
                    const std::optional<Doubles>& weight, double min_rows, int max_depth,
                    bool expand, int n_threads) {
  const auto rule = stopping(X, y, weight, min_rows, max_depth);
  certree::TreeColumns tree;
  {
    const nb::gil_scoped_release release;
    tree = certree::grow_dyadic(matrix(X), rule, expand, n_threads);
  }
  return columns(std::move(tree));
}

template <class Real>
Columns grow_kd(const In<Real, 2>& X, const std::optional<Ints>& y,
                const std::optional<Doubles>& weight, double min_rows, int max_depth, bool spread,
                int n_threads) {
  const auto rule = stopping(X, y, weight, min_rows, max_depth);
  certree::TreeColumns tree;
  {
    const nb::gil_scoped_release release;
    const auto axis = spread ? certree::Axis::spread : certree::Axis::cycle;
    tree = certree::grow_kd(matrix(X), rule, axis, n_threads);
  }
  return columns(std::move(tree));
}

certree::Criterion criterion_of(const std::string& name) {
  if (name == "gini") return certree::Criterion::gini;
  if (name == "entropy") return certree::Criterion::entropy;
  if (name == "misclassification") return certree::Criterion::misclassification;
  if (name == "squared") return certree::Criterion::squared;
  throw std::invalid_argument("unknown criterion \"" + name + "\"");
}

// Number of features that hold no categories.
std::size_t n_numbers(std::size_t n_features, const std::optional<Bytes>& category) {
  if (!category) return n_features;
  expect_length("category", category->size(), n_features);
  return static_cast<std::size_t>(
      std::count(category->data(), category->data() + n_features, std::uint8_t{0}));
}

// Ranks and rows take turns.
using Orders = In<std::uint32_t, 2>;

template <class Real>
Out2<std::uint32_t> rank_rows(const In<Real, 2>& X, const std::optional<Bytes>& category,
                              int n_threads) {
  Result<std::uint32_t> order(n_numbers(X.shape(1), category), 2 * X.shape(0));
  {
    const nb::gil_scoped_release release;
    certree::rank_rows(matrix(X), category ? category->data() : nullptr,
                       reinterpret_cast<certree::RankedRow*>(order.data()), n_threads);
  }
  return std::move(order).table();
}

certree::Ranked ranked(const std::optional<Orders>& order, const std::optional<Ints>& place,
                       std::size_t n_rows, std::size_t n_numbers) {
  if (!order || !place) return {};
  expect_length("order", order->shape(0), n_numbers);
  expect_length("order's row", order->shape(1), 2 * place->size());
  std::int32_t next = 0;
  for (std::size_t i = 0; i < place->size(); ++i) {
    const std::int32_t at = place->data()[i];
    if (at != -1 && at != next++) throw std::invalid_argument("place must count up from 0");
  }
  expect_length("place", static_cast<std::size_t>(next), n_rows);
  const auto* const rows = reinterpret_cast<const certree::RankedRow*>(order->data());
  if (std::any_of(rows, rows + n_numbers * place->size(),
                  [&](const certree::RankedRow& r) { return r.row >= place->size(); }))
    throw std::invalid_argument("order must hold rows of place");
  return {rows, static_cast<std::int64_t>(place->size()), place->data()};
}

// y holds classes, or target numbers; the other one is None.
certree::Response response(std::size_t n_rows, const std::optional<Ints>& y,
                           const std::optional<Doubles>& target, std::int32_t n_classes,
                           const std::string& criterion) {
  const auto kind = criterion_of(criterion);
  if (kind == certree::Criterion::squared) {
    if (!target) throw std::invalid_argument("criterion \"squared\" takes a target");
    expect_length("target", target->size(), n_rows);
    return {kind, nullptr, n_classes, target->data()};
  }
  if (!y) throw std::invalid_argument("criterion \"" + criterion + "\" takes classes y");
  expect_codes("y", *y, n_classes);
  return {kind, y->data(), n_classes, nullptr};
}

template <class Real>
Columns grow_cart(const In<Real, 2>& X, const std::optional<Ints>& y,
                  const std::optional<Doubles>& target, std::int32_t n_classes,
                  const std::string& criterion, const std::optional<Doubles>& weight,
                  double min_rows, int max_depth, double min_gain, std::int64_t max_leaves,
                  std::int64_t max_features, bool random_cuts, std::uint64_t key,
                  const std::optional<Bytes>& category, const std::optional<Signs>& monotonic,
                  const std::optional<Orders>& order, const std::optional<Ints>& place,
                  int n_threads) {
  const auto rule = stopping(X, y, weight, min_rows, max_depth);
  const auto answer = response(X.shape(0), y, target, n_classes, criterion);
  if (monotonic) {
    expect_length("monotonic", monotonic->size(), X.shape(1));
    if (y && n_classes != 2)
      throw std::invalid_argument("monotonic takes a target or two classes, got " +
                                  std::to_string(n_classes) + " classes");
  }
  const auto given = ranked(order, place, X.shape(0), n_numbers(X.shape(1), category));
  if (max_features < 1) throw std::invalid_argument("max_features must be at least 1");
  const certree::Greedy greedy{min_gain,
                               max_leaves,
                               max_features,
                               random_cuts,
                               key,
                               category ? category->data() : nullptr,
                               monotonic ? monotonic->data() : nullptr};
  certree::TreeColumns tree;
  {
    const nb::gil_scoped_release release;
    tree = certree::grow_cart(matrix(X), given, answer, rule, greedy, n_threads);
  }
  const bool optimal = !tree.heuristic;
  return columns(std::move(tree), optimal);
}

// -- routing and counting
// --------------------------------------------------------------------------

// category_start is empty where no node compares categories.
template <class Real>
Out1<std::int32_t> apply(const Ints& feature, const Doubles& threshold, const Ints& left,
                         const Bytes& missing_left, const Longs& category_start,
                         const Ints& categories, const In<Real, 2>& X, int n_threads) {
  // Single rows must be fast, so the columns are not looked through here: Tree has done it.
  expect_length("feature", feature.size(), left.size());
  expect_length("threshold", threshold.size(), left.size());
  expect_length("missing_left", missing_left.size(), left.size());
  if (categories.size() > 0)
    expect_length("category_start", category_start.size(), left.size() + 1);
  const certree::TreeView tree{feature.data(),
                               threshold.data(),
                               left.data(),
                               missing_left.data(),
                               static_cast<std::int32_t>(left.size()),
                               categories.size() > 0 ? category_start.data() : nullptr,
                               categories.data()};
  const auto rows = matrix(X);
  Result<std::int32_t> leaf(X.shape(0));
  {
    const nb::gil_scoped_release release;
    certree::apply(tree, rows, leaf.data(), n_threads);
  }
  return std::move(leaf).column();
}

Out2<double> count(const Ints& left, const Ints& leaf, const Ints& y,
                   const std::optional<Doubles>& weight, std::int64_t n_classes) {
  const std::int32_t m = node_count(left);
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  expect_length("y", y.size(), leaf.size());
  if (weight) expect_length("weight", weight->size(), leaf.size());
  expect_codes("y", y, n_classes);
  expect_codes("leaf", leaf, m);
  Result<double> counts(left.size(), static_cast<std::size_t>(n_classes));
  counts.fill(0.0);
  {
    const nb::gil_scoped_release release;
    certree::count(left.data(), m, leaf.data(), y.data(), weight ? weight->data() : nullptr,
                   static_cast<std::int64_t>(leaf.size()), n_classes, counts.data());
  }
  return std::move(counts).table();
}

std::tuple<Out1<double>, Out1<double>, Out1<double>> moments(const Ints& left, const Ints& leaf,
                                                             const Doubles& target,
                                                             const std::optional<Doubles>& weight) {
  const std::int32_t m = node_count(left);
  expect_length("target", target.size(), leaf.size());
  if (weight) expect_length("weight", weight->size(), leaf.size());
  expect_codes("leaf", leaf, m);
  Result<double> rows(left.size()), mean(left.size()), squares(left.size());
  {
    const nb::gil_scoped_release release;
    certree::moments(left.data(), m, leaf.data(), target.data(), weight ? weight->data() : nullptr,
                     static_cast<std::int64_t>(leaf.size()), rows.data(), mean.data(),
                     squares.data());
  }
  return {std::move(rows).column(), std::move(mean).column(), std::move(squares).column()};
}

Out1<std::int32_t> majority(const Ints& left, const Table& counts) {
  const std::int32_t m = node_count(left);
  expect_length("counts", counts.shape(0), left.size());
  if (counts.shape(1) == 0) throw std::invalid_argument("counts has no classes");
  Result<std::int32_t> label(left.size());
  {
    const nb::gil_scoped_release release;
    certree::majority(left.data(), m, counts.data(), static_cast<std::int64_t>(counts.shape(1)),
                      label.data());
  }
  return std::move(label).column();
}

Out2<double> frequencies(const Ints& left, const Table& counts, double smoothing) {
  const std::int32_t m = node_count(left);
  expect_length("counts", counts.shape(0), left.size());
  if (counts.shape(1) == 0) throw std::invalid_argument("counts has no classes");
  Result<double> frequency(counts.shape(0), counts.shape(1));
  {
    const nb::gil_scoped_release release;
    certree::frequencies(left.data(), m, counts.data(), static_cast<std::int64_t>(counts.shape(1)),
                         smoothing, frequency.data());
  }
  return std::move(frequency).table();
}

Out1<double> smoothed_means(const Ints& left, const Doubles& rows, const Doubles& mean,
                            double smoothing) {
  const std::int32_t m = node_count(left);
  expect_length("rows", rows.size(), left.size());
  expect_length("mean", mean.size(), left.size());
  Result<double> value(left.size());
  {
    const nb::gil_scoped_release release;
    certree::smoothed_means(left.data(), m, rows.data(), mean.data(), smoothing, value.data());
  }
  return std::move(value).column();
}

Out1<double> make_monotone(const Ints& left, const Ints& feature, const In<std::int8_t, 1>& slope,
                           const Doubles& value) {
  const std::int32_t m = node_count(left);
  expect_length("feature", feature.size(), left.size());
  expect_length("value", value.size(), left.size());
  expect_codes("feature", feature, static_cast<std::int64_t>(slope.size()));
  Result<double> moved(left.size());
  {
    const nb::gil_scoped_release release;
    std::copy(value.data(), value.data() + value.size(), moved.data());
    certree::make_monotone(left.data(), m, feature.data(), slope.data(), moved.data());
  }
  return std::move(moved).column();
}

Out1<std::int64_t> depths(const Ints& left, const Ints& chain) {
  const std::int32_t m = node_count(left);
  expect_length("chain", chain.size(), left.size());
  Result<std::int64_t> depth(left.size());
  {
    const nb::gil_scoped_release release;
    certree::depths(left.data(), chain.data(), m, depth.data());
  }
  return std::move(depth).column();
}

// -- laws over prunings
// ----------------------------------------------------------------------------

Out2<double> error_gains(const Ints& left, const Table& counts, const Ints& label,
                         std::int64_t n_terms, bool empty_leaves_count) {
  const std::int32_t m = node_count(left);
  const auto n_classes = static_cast<std::int64_t>(counts.shape(1));
  expect_length("counts", counts.shape(0), left.size());
  expect_length("label", label.size(), left.size());
  expect_codes("label", label, n_classes);
  if (n_terms != 2 && n_terms != 3) throw std::invalid_argument("n_terms must be 2 or 3");
  Result<double> gains(left.size(), static_cast<std::size_t>(n_terms));
  {
    const nb::gil_scoped_release release;
    certree::error_gains(left.data(), m, counts.data(), label.data(), n_classes, n_terms,
                         empty_leaves_count, gains.data());
  }
  return std::move(gains).table();
}

Out2<double> squared_gains(const Ints& left, const Doubles& rows, const Doubles& mean, double unit,
                           std::int64_t n_terms, bool empty_leaves_count) {
  const std::int32_t m = node_count(left);
  expect_length("rows", rows.size(), left.size());
  expect_length("mean", mean.size(), left.size());
  if (n_terms != 2 && n_terms != 3) throw std::invalid_argument("n_terms must be 2 or 3");
  Result<double> gains(left.size(), static_cast<std::size_t>(n_terms));
  {
    const nb::gil_scoped_release release;
    certree::squared_gains(left.data(), m, rows.data(), mean.data(), unit, n_terms,
                           empty_leaves_count, gains.data());
  }
  return std::move(gains).table();
}

certree::Terms terms(const Ints& left, const Table& gains, const Doubles& stop,
                     const Doubles& split) {
  const std::int32_t m = node_count(left);
  expect_length("gains", gains.shape(0), left.size());
  expect_length("stop", stop.size(), left.size());
  expect_length("split", split.size(), left.size());
  return {left.data(),  m,           static_cast<std::int32_t>(gains.shape(1)),
          gains.data(), stop.data(), split.data()};
}

std::tuple<Out1<double>, Out1<double>, double> weigh(const Ints& left, const Table& gains,
                                                     const Doubles& stop, const Doubles& split,
                                                     const Doubles& theta, const Doubles& root,
                                                     bool prune) {
  const auto law = terms(left, gains, stop, split);
  expect_length("theta", theta.size(), gains.shape(1));
  expect_length("root", root.size(), gains.shape(1));
  Result<double> weight(left.size()), log_odds(left.size());
  double evidence = 0.0;
  {
    const nb::gil_scoped_release release;
    const auto rule = prune ? certree::Rule::prune : certree::Rule::average;
    evidence = certree::weigh(law, theta.data(), root.data(), rule, weight.data(), log_odds.data());
  }
  return {std::move(weight).column(), std::move(log_odds).column(), evidence};
}

Out1<double> reach(const Ints& left, const Doubles& log_odds) {
  const std::int32_t m = node_count(left);
  expect_length("log_odds", log_odds.size(), left.size());
  Result<double> reached(left.size());
  {
    const nb::gil_scoped_release release;
    certree::reach(left.data(), m, log_odds.data(), reached.data());
  }
  return std::move(reached).column();
}

Out1<double> sums_below(const Ints& left, const Doubles& log_odds, const Doubles& value) {
  const std::int32_t m = node_count(left);
  expect_length("log_odds", log_odds.size(), left.size());
  expect_length("value", value.size(), left.size());
  Result<double> sum(left.size());
  {
    const nb::gil_scoped_release release;
    certree::sums_below(left.data(), m, log_odds.data(), value.data(), sum.data());
  }
  return std::move(sum).column();
}

Out1<double> log_masses(const Ints& left, const Ints& label, const Table& log_stop,
                        const Table& log_split, const In<double, 3>& log_label) {
  const std::int32_t m = node_count(left);
  const std::size_t n_priors = log_label.shape(0);
  for (const Table* decisions : {&log_stop, &log_split}) {
    expect_length("decisions", decisions->shape(0), n_priors);
    expect_length("decisions' row", decisions->shape(1), left.size());
  }
  expect_length("log_label's row", log_label.shape(1), left.size());
  expect_length("label", label.size(), left.size());
  expect_codes("label", label, static_cast<std::int64_t>(log_label.shape(2)));
  Result<double> mass(n_priors);
  {
    const nb::gil_scoped_release release;
    const certree::LabelledPriors priors{log_stop.data(), log_split.data(), log_label.data(),
                                         static_cast<std::int64_t>(n_priors)};
    certree::log_masses(left.data(), m, label.data(), static_cast<std::int64_t>(log_label.shape(2)),
                        priors, mass.data());
  }
  return std::move(mass).column();
}

Out1<double> likeliest(const Ints& left, const Doubles& log_odds, const Doubles& chain_mode) {
  const std::int32_t m = node_count(left);
  expect_length("log_odds", log_odds.size(), left.size());
  expect_length("chain_mode", chain_mode.size(), left.size());
  Result<double> pruning(left.size());
  {
    const nb::gil_scoped_release release;
    certree::likeliest(left.data(), m, log_odds.data(), chain_mode.data(), pruning.data());
  }
  return std::move(pruning).column();
}

certree::Values values(const Ints& left, const std::optional<Ints>& label,
                       const std::optional<Table>& frequency, std::int64_t n_classes) {
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  if (label.has_value() == frequency.has_value())
    throw std::invalid_argument("expected either label or frequency");
  if (label) {
    expect_length("label", label->size(), left.size());
    expect_codes("label", *label, n_classes);
    return {label->data(), nullptr, n_classes};
  }
  expect_length("frequency", frequency->shape(0), left.size());
  expect_length("frequency's row", frequency->shape(1), static_cast<std::size_t>(n_classes));
  return {nullptr, frequency->data(), n_classes};
}

Out2<double> push_down(const Ints& left, const Doubles& weight, const std::optional<Ints>& label,
                       const std::optional<Table>& frequency, std::int64_t n_classes) {
  const std::int32_t m = node_count(left);
  expect_length("weight", weight.size(), left.size());
  const auto votes = values(left, label, frequency, n_classes);
  Result<double> score(left.size(), static_cast<std::size_t>(n_classes));
  {
    const nb::gil_scoped_release release;
    certree::push_down(left.data(), m, weight.data(), votes.label, votes.frequency, n_classes,
                       score.data());
  }
  return std::move(score).table();
}

certree::Loss loss_named(const std::string& name) {
  if (name == "error") return certree::Loss::error;
  if (name == "log_loss") return certree::Loss::log_loss;
  if (name == "squared") return certree::Loss::squared;
  throw std::invalid_argument("unknown loss \"" + name + "\"");
}

certree::Grid grid(const Table& gains, const Table& theta, bool prune) {
  expect_length("theta's row", theta.shape(1), gains.shape(1));
  return {theta.data(), static_cast<std::int64_t>(theta.shape(0)),
          prune ? certree::Rule::prune : certree::Rule::average};
}

Out1<double> score_grid(const Ints& left, const Table& gains, const Doubles& stop,
                        const Doubles& split, const Table& theta, bool prune,
                        const std::optional<Ints>& label, const std::optional<Table>& frequency,
                        const Table& holdout, const std::string& loss_name, int n_threads) {
  const auto law = terms(left, gains, stop, split);
  const auto laws = grid(gains, theta, prune);
  const certree::Loss kind = loss_named(loss_name);
  const bool numbers = kind == certree::Loss::squared;
  expect_length("holdout", holdout.shape(0), left.size());
  if (numbers) expect_length("holdout's row", holdout.shape(1), 3);
  const auto n_classes = numbers ? 1 : static_cast<std::int64_t>(holdout.shape(1));
  const auto votes = values(left, label, frequency, n_classes);
  Result<double> loss(theta.shape(0));
  if (theta.shape(0) > 0) {
    const nb::gil_scoped_release release;
    certree::score_grid(law, laws, votes, holdout.data(), kind, loss.data(), n_threads);
  }
  return std::move(loss).column();
}

std::tuple<Out1<double>, Out2<double>> held_out_shares(const Ints& left, const Table& gains,
                                                       const Doubles& stop, const Doubles& split,
                                                       const Table& theta, bool prune,
                                                       const std::optional<Ints>& label,
                                                       const std::optional<Table>& frequency,
                                                       const Table& holdout, int n_threads) {
  const auto law = terms(left, gains, stop, split);
  const auto laws = grid(gains, theta, prune);
  expect_length("holdout", holdout.shape(0), left.size());
  const auto votes = values(left, label, frequency, static_cast<std::int64_t>(holdout.shape(1)));
  if (laws.n == 0) throw std::invalid_argument("theta has no rows");
  certree::HeldOutShares held_out;
  {
    const nb::gil_scoped_release release;
    held_out = certree::held_out_shares(law, laws, votes, holdout.data(), n_threads);
  }
  Result<double> rows(held_out.rows.size()), share(held_out.rows.size(), theta.shape(0));
  std::copy(held_out.rows.begin(), held_out.rows.end(), rows.data());
  std::copy(held_out.share.begin(), held_out.share.end(), share.data());
  return {std::move(rows).column(), std::move(share).table()};
}

std::tuple<Out1<double>, double> mix(const Doubles& rows, const Table& share,
                                     std::int64_t n_steps) {
  expect_length("share", share.shape(0), rows.size());
  if (share.shape(0) == 0 || share.shape(1) == 0) throw std::invalid_argument("share is empty");
  Result<double> proportion(share.shape(1));
  double loss = 0.0;
  {
    const nb::gil_scoped_release release;
    loss = certree::mix(rows.data(), share.data(), static_cast<std::int64_t>(share.shape(0)),
                        static_cast<std::int64_t>(share.shape(1)), n_steps, proportion.data());
  }
  return {std::move(proportion).column(), loss};
}

Out1<double> critical_prices(const Ints& left, const Doubles& cost_gain, const Doubles& leaf_gain) {
  const std::int32_t m = node_count(left);
  expect_length("cost_gain", cost_gain.size(), left.size());
  expect_length("leaf_gain", leaf_gain.size(), left.size());
  Result<double> critical(left.size());
  {
    const nb::gil_scoped_release release;
    certree::critical_prices(left.data(), m, cost_gain.data(), leaf_gain.data(), critical.data());
  }
  return std::move(critical).column();
}

Out1<std::uint8_t> fragment_pruning(const Ints& left, const Doubles& cost_gain,
                                    const Doubles& leaf_gain, const Doubles& chain_leaves,
                                    const Doubles& size_penalty, const Doubles& cell_penalty) {
  const std::int32_t m = node_count(left);
  expect_length("cost_gain", cost_gain.size(), left.size());
  expect_length("leaf_gain", leaf_gain.size(), left.size());
  expect_length("chain_leaves", chain_leaves.size(), left.size());
  expect_length("size_penalty", size_penalty.size(), left.size());
  expect_length("cell_penalty", cell_penalty.size(), left.size());
  const certree::FragmentPenalty penalty{cost_gain.data(), leaf_gain.data(), chain_leaves.data(),
                                         size_penalty.data(), cell_penalty.data()};
  Result<std::uint8_t> division(left.size());
  {
    const nb::gil_scoped_release release;
    certree::fragment_pruning(left.data(), m, penalty,
                              reinterpret_cast<certree::Division*>(division.data()));
  }
  return std::move(division).column();
}

Out1<std::int32_t> merge_order(const Ints& left, const Doubles& rise) {
  const std::int32_t m = node_count(left);
  expect_length("rise", rise.size(), left.size());
  Result<std::int32_t> step(left.size());
  {
    const nb::gil_scoped_release release;
    certree::merge_order(left.data(), m, rise.data(), step.data());
  }
  return std::move(step).column();
}

template <class Real>
void define_for(nb::module_& core) {
  core.def("grow_dyadic", &grow_dyadic<Real>, "X"_a.noconvert(), "y"_a.noconvert().none(),
           "weight"_a.noconvert().none(), "min_rows"_a, "max_depth"_a, "expand"_a, "n_threads"_a,
           "Columns of the dyadic tree over the rows of X.");
  core.def("grow_kd", &grow_kd<Real>, "X"_a.noconvert(), "y"_a.noconvert().none(),
           "weight"_a.noconvert().none(), "min_rows"_a, "max_depth"_a, "spread"_a, "n_threads"_a,
           "Columns of the median tree over the rows of X.");
  core.def("grow_cart", &grow_cart<Real>, "X"_a.noconvert(), "y"_a.noconvert().none(),
           "target"_a.noconvert().none(), "n_classes"_a, "criterion"_a,
           "weight"_a.noconvert().none(), "min_rows"_a, "max_depth"_a, "min_gain"_a, "max_leaves"_a,
           "max_features"_a, "random_cuts"_a, "key"_a, "category"_a.noconvert().none(),
           "monotonic"_a.noconvert().none(), "order"_a.noconvert().none(),
           "place"_a.noconvert().none(), "n_threads"_a,
           "Columns of the greedy tree over the rows of X, which may be some of those ranked.");
  core.def("rank_rows", &rank_rows<Real>, "X"_a.noconvert(), "category"_a.noconvert().none(),
           "n_threads"_a,
           "Rows in the order of each feature of numbers: their ranks and numbers take turns.");
  core.def("apply", &apply<Real>, "feature"_a.noconvert(), "threshold"_a.noconvert(),
           "left"_a.noconvert(), "missing_left"_a.noconvert(), "category_start"_a.noconvert(),
           "categories"_a.noconvert(), "X"_a.noconvert(), "n_threads"_a,
           "The leaf that each row of X reaches.");
}

}  // namespace

NB_MODULE(_core, core) {
  core.doc() = "The loops of certree over plain arrays.";
  define_for<float>(core);
  define_for<double>(core);
  core.def("count", &count, "left"_a.noconvert(), "leaf"_a.noconvert(), "y"_a.noconvert(),
           "weight"_a.noconvert().none(), "n_classes"_a,
           "Weight of the rows of each class in each node.");
  core.def("majority", &majority, "left"_a.noconvert(), "counts"_a.noconvert(),
           "The largest class of each node; a node without rows has its parent's.");
  core.def("frequencies", &frequencies, "left"_a.noconvert(), "counts"_a.noconvert(), "smoothing"_a,
           "Shares of the classes in each node; a node without rows has its parent's.");
  core.def("moments", &moments, "left"_a.noconvert(), "leaf"_a.noconvert(), "target"_a.noconvert(),
           "weight"_a.noconvert().none(),
           "(rows, mean, sum of squared distances from it) of the targets in each node.");
  core.def("smoothed_means", &smoothed_means, "left"_a.noconvert(), "rows"_a.noconvert(),
           "mean"_a.noconvert(), "smoothing"_a, "Means that are drawn to those of the parents.");
  core.def("make_monotone", &make_monotone, "left"_a.noconvert(), "feature"_a.noconvert(),
           "slope"_a.noconvert(), "value"_a.noconvert(),
           "Values of nodes that rise or fall along features in every pruning.");
  core.def("depths", &depths, "left"_a.noconvert(), "chain"_a.noconvert(),
           "Number of cells above each node.");
  core.def("error_gains", &error_gains, "left"_a.noconvert(), "counts"_a.noconvert(),
           "label"_a.noconvert(), "n_terms"_a, "empty_leaves_count"_a,
           "Gains in errors, square roots of rows and, with three terms, leaves.");
  core.def("squared_gains", &squared_gains, "left"_a.noconvert(), "rows"_a.noconvert(),
           "mean"_a.noconvert(), "unit"_a, "n_terms"_a, "empty_leaves_count"_a,
           "Gains in sums of squares over unit, square roots of rows and leaves.");
  core.def("weigh", &weigh, "left"_a.noconvert(), "gains"_a.noconvert(), "stop"_a.noconvert(),
           "split"_a.noconvert(), "theta"_a.noconvert(), "root"_a.noconvert(), "prune"_a,
           "(weight, log_odds, log evidence) of one law.");
  core.def("reach", &reach, "left"_a.noconvert(), "log_odds"_a.noconvert(),
           "Probability that each node is in the pruning.");
  core.def("sums_below", &sums_below, "left"_a.noconvert(), "log_odds"_a.noconvert(),
           "value"_a.noconvert(),
           "Expected sum over the leaves of the pruning below each node that is reached.");
  core.def("log_masses", &log_masses, "left"_a.noconvert(), "label"_a.noconvert(),
           "log_stop"_a.noconvert(), "log_split"_a.noconvert(), "log_label"_a.noconvert(),
           "Log mass of the labelled prunings that label the leaves so, under each prior.");
  core.def("likeliest", &likeliest, "left"_a.noconvert(), "log_odds"_a.noconvert(),
           "chain_mode"_a.noconvert(), "Log odds (infinite) of the likeliest single pruning.");
  core.def("push_down", &push_down, "left"_a.noconvert(), "weight"_a.noconvert(),
           "label"_a.noconvert().none(), "frequency"_a.noconvert().none(), "n_classes"_a,
           "Path sums of the weighted votes of the nodes.");
  core.def("score_grid", &score_grid, "left"_a.noconvert(), "gains"_a.noconvert(),
           "stop"_a.noconvert(), "split"_a.noconvert(), "theta"_a.noconvert(), "prune"_a,
           "label"_a.noconvert().none(), "frequency"_a.noconvert().none(), "holdout"_a.noconvert(),
           "loss"_a, "n_threads"_a, "Held-out loss of the vote under each row of theta.");
  core.def("held_out_shares", &held_out_shares, "left"_a.noconvert(), "gains"_a.noconvert(),
           "stop"_a.noconvert(), "split"_a.noconvert(), "theta"_a.noconvert(), "prune"_a,
           "label"_a.noconvert().none(), "frequency"_a.noconvert().none(), "holdout"_a.noconvert(),
           "n_threads"_a,
           "(rows, share): what each law's vote gives to the held-out rows' classes.");
  core.def("mix", &mix, "rows"_a.noconvert(), "share"_a.noconvert(), "n_steps"_a,
           "(proportion, loss): of the laws in the mixture with a small held-out log loss.");
  core.def("critical_prices", &critical_prices, "left"_a.noconvert(), "cost_gain"_a.noconvert(),
           "leaf_gain"_a.noconvert(), "Price of a leaf from which on a node is not split.");
  core.def("fragment_pruning", &fragment_pruning, "left"_a.noconvert(), "cost_gain"_a.noconvert(),
           "leaf_gain"_a.noconvert(), "chain_leaves"_a.noconvert(), "size_penalty"_a.noconvert(),
           "cell_penalty"_a.noconvert(),
           "Whether the pruning with the least penalty divides a node (1), its fragment too (2).");
  core.def("merge_order", &merge_order, "left"_a.noconvert(), "rise"_a.noconvert(),
           "Number of the merge of sibling leaves that makes each node a leaf.");
}
