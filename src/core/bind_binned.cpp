// Python bindings of binning, and of growth from histograms.
#include <nanobind/stl/vector.h>

#include "bind_bins.hpp"
#include "grow/coarser.hpp"
#include "grow/samples.hpp"

namespace certree::bindings {
namespace {

auto bins_of(BinColumns&& kept) {
  return std::tuple(owned(std::move(kept.n_bins)), owned(std::move(kept.bin_start)),
                    owned(std::move(kept.low)), owned(std::move(kept.high)),
                    owned(std::move(kept.category_start)), owned(std::move(kept.category_codes)),
                    owned(std::move(kept.category_bin)));
}

// Most bins of a feature of numbers, and whether ends are fine.
using Wanted = std::tuple<std::int64_t, bool>;

NumberBins wanted_bins(const Wanted& wanted) {
  const auto [most, fine_ends] = wanted;
  if (most < 2 || most > kMostBins) throw std::invalid_argument("bins must be 2 .. 255");
  return {static_cast<std::size_t>(most), fine_ends};
}

auto bin_features(const Features& features, const Ints& sample,
                  const std::optional<Bytes>& category, const Wanted& wanted, int n_threads) {
  const NumberBins numbers = wanted_bins(wanted);
  const std::size_t p = features.size(), n = length_of(features);
  const std::vector<FeatureValues> values = values_of(features);
  const auto flags = sized("category", category, p);
  expect_codes("sample", view(sample), static_cast<std::int64_t>(n));
  BinColumns kept;
  const auto loop = [&](Table<std::uint8_t> codes) {
    kept = certree::bin_features(values, view(sample), flags, numbers, n_threads, codes);
  };
  auto codes = run(loop, Rows<std::uint8_t>(p, n));
  return std::tuple_cat(std::tuple(codes), bins_of(std::move(kept)));
}

// columns: those of each feature, by row.
template <class Real>
auto bin_stored(const Sparse<Real>& columns, const Ints& sample, const Wanted& wanted,
                int n_threads) {
  const NumberBins numbers = wanted_bins(wanted);
  const SparseRows<Real> features = rows(columns);
  if (features.width > 2147483647)
    throw std::invalid_argument("features have more than 2147483647 rows");
  expect_codes("sample", view(sample), features.width);
  BinColumns kept;
  StoredColumns stored;
  run([&] { kept = certree::bin_stored(features, view(sample), numbers, n_threads, stored); });
  return std::tuple_cat(std::tuple(owned(std::move(stored.start)), owned(std::move(stored.row)),
                                   owned(std::move(stored.code)), owned(std::move(stored.zero))),
                        bins_of(std::move(kept)));
}

auto coarsen(const Codes& codes, const Kept& kept, std::int64_t n_edges, std::uint64_t key,
             const std::optional<Ints>& order) {
  const BinnedTable table = binned(codes, kept);
  const std::size_t p = codes.shape(0);
  if (n_edges < 1) throw std::invalid_argument("n_edges must be at least 1");
  const FeatureOrder feature_order = order_of_features(order, p);
  CoarserBins bins;
  std::vector<std::int32_t> features(p);
  std::iota(features.begin(), features.end(), 0);
  const auto loop = [&](Table<std::uint8_t> coarser) {
    certree::coarsen(table, features, n_edges, key, feature_order, bins, coarser);
  };
  auto coarser = run(loop, Rows<std::uint8_t>(p, codes.shape(1)));
  return std::tuple(coarser, owned(std::move(bins.n_bins)), owned(std::move(bins.low)),
                    owned(std::move(bins.high)));
}

auto grow_gradients(const AnyCodes& codes, const Kept& kept, const Ints& features,
                    const Ints& growing, const Ints& others, const Doubles& gradient,
                    const Doubles& hessian, double l2, double min_hessian, const Limits& limits,
                    const MonotonicSigns& monotonic, const Groups& groups, int n_threads) {
  BinnedTable table = binned(codes, kept);
  const std::size_t p = width_of(codes), n = static_cast<std::size_t>(table.n_rows());
  const BinnedGrowth growth = growth_of(limits, monotonic, groups, p, n_threads);
  const Derivatives response{sized("gradient", gradient, n), sized("hessian", hessian, n), l2,
                             min_hessian};
  if (growing.size() == 0) throw std::invalid_argument("no row grows the tree");
  expect_codes("features", view(features), static_cast<std::int64_t>(p));
  expect_codes("rows", view(growing), static_cast<std::int64_t>(n));
  expect_codes("others", view(others), static_cast<std::int64_t>(n));
  BinnedTree tree;
  const auto loop = [&](std::span<std::int32_t> leaf) {
    fill(leaf, kLeaf);
    const SentRows rows{view(growing), view(others)};
    GrowthMemory memory;
    const PlacesByRow by_row = list_places(table);
    table.stored.by_row = &by_row;
    const LargestDerivatives largest = largest_derivatives(response, rows.growing);
    tree = certree::grow_gradients(table, rows, largest, view(features), growth, response, memory,
                                   leaf);
  };
  auto leaf = run(loop, Column<std::int32_t>(n));
  TreeColumns& columns = tree.columns;
  const std::size_t m = columns.left.size();
  return std::tuple(
      std::tuple(owned(std::move(columns.feature)), owned(std::move(columns.threshold)),
                 owned(std::move(columns.left)), owned(std::move(columns.chain)),
                 owned(std::move(columns.default_left)), owned(std::move(columns.category_start)),
                 owned(std::move(columns.categories)), nb::none()),
      owned(std::move(tree.sums), m, tree.sums.size() / m), leaf);
}

// Draws, first, n_trees, max_features_of_tree, is_balanced.
using Bagged = std::tuple<Draws, std::int64_t, std::int64_t, std::int64_t, bool>;

Bags bags_of(const Bagged& bagged, std::size_t n_rows) {
  const auto& [draws, first, n_trees, max_of_tree, is_balanced] = bagged;
  if (n_trees < 0 || first < 0) throw std::invalid_argument("trees are numbered from 0");
  return {drawing_of(draws, n_rows), first, n_trees, std::max<std::int64_t>(max_of_tree, 1),
          is_balanced};
}

// Codes of rows, row by row: dense, or where those of each row start, features, codes, and those of
// 0.
using StoredRows = std::tuple<In<std::int64_t, 1>, Ints, Bytes, Bytes>;
using RowCodes = std::variant<Codes, StoredRows>;

DrawnRows rows_of(const RowCodes& codes, const Kept& kept, const std::optional<Doubles>& weight) {
  const auto* const dense = std::get_if<Codes>(&codes);
  const std::size_t p = dense ? dense->shape(1) : std::get<3>(std::get<StoredRows>(codes)).size();
  const KeptBins bins = kept_bins(kept, p);
  DrawnRows rows{bins, {}, {}, {}};
  if (dense) {
    rows.codes = view(*dense);
  } else {
    const auto& [start, feature, code, zero] = std::get<StoredRows>(codes);
    if (start.size() == 0) throw std::invalid_argument("start must have a number for each row");
    rows.stored = {starts_of("start", start, start.size() - 1, feature.size()), view(feature),
                   sized("code", code, feature.size()), view(zero)};
    expect_codes("feature", view(feature), static_cast<std::int64_t>(p));
    bool is_known = true;
    for (std::size_t k = 0; k < code.size(); ++k) {
      const std::uint8_t one = code.data()[k];
      is_known &=
          one == kMissingBin || one < bins.n_bins[static_cast<std::size_t>(feature.data()[k])];
    }
    for (std::size_t j = 0; j < p; ++j)
      is_known &= bins.n_bins[j] == 0 || zero.data()[j] < bins.n_bins[j];
    if (!is_known) throw std::invalid_argument("code must be those of bins");
  }
  if (rows.n_rows() == 0 || rows.n_rows() > 2147483647)
    throw std::invalid_argument("codes must have between 1 and 2147483647 rows");
  rows.weight = sized("weight", weight, static_cast<std::size_t>(rows.n_rows()));
  return rows;
}

// The columns of the nodes of all trees, where each starts, and what their rows sum up to.
template <class Grow>
auto grown(const Grow& grow) {
  BinnedTrees trees;
  run([&] { trees = grow(); });
  NodeSums& sums = trees.sums;
  return std::tuple(handed_over(std::move(trees.nodes), std::move(trees.root)),
                    owned(std::move(sums.begin)), owned(std::move(sums.lane)),
                    owned(std::move(sums.sum)));
}

template <class Response>
auto grow_bags(const DrawnRows& rows, const Response& response, const Bagged& bagged,
               const BinnedGrowth& growth) {
  const Bags bags = bags_of(bagged, static_cast<std::size_t>(rows.n_rows()));
  return grown([&] { return certree::grow_bags(rows, bags, growth, response); });
}

Classes classes_of(const Ints& y, std::size_t n_rows, std::int32_t n_classes,
                   const std::string& criterion) {
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  const Classes response{sized("y", y, n_rows), n_classes, criterion_of(criterion)};
  expect_codes("y", response.y, n_classes);
  return response;
}

auto grow_classes(const RowCodes& codes, const Kept& kept, const std::optional<Doubles>& weight,
                  const Ints& y, std::int32_t n_classes, const std::string& criterion,
                  const Bagged& bagged, const Limits& limits, const MonotonicSigns& monotonic,
                  const Groups& groups, int n_threads) {
  const DrawnRows rows = rows_of(codes, kept, weight);
  const auto n = static_cast<std::size_t>(rows.n_rows());
  const Classes response = classes_of(y, n, n_classes, criterion);
  return grow_bags(rows, response, bagged,
                   growth_of(limits, monotonic, groups, rows.bins.n_bins.size(), n_threads));
}

auto grow_numbers(const RowCodes& codes, const Kept& kept, const std::optional<Doubles>& weight,
                  const Doubles& target, const std::string& criterion, const Bagged& bagged,
                  const Limits& limits, const MonotonicSigns& monotonic, const Groups& groups,
                  int n_threads) {
  const DrawnRows rows = rows_of(codes, kept, weight);
  const Numbers numbers{sized("target", target, static_cast<std::size_t>(rows.n_rows())),
                        criterion == "poisson" ? Criterion::poisson : Criterion::squared};
  return grow_bags(rows, numbers, bagged,
                   growth_of(limits, monotonic, groups, rows.bins.n_bins.size(), n_threads));
}

auto grow_columns(const RowCodes& codes, const Kept& kept, const std::optional<Doubles>& weight,
                  const Doubles2& y, const std::optional<Ints>& n_classes, const Doubles& factor,
                  const std::string& criterion, const Bagged& bagged, const Limits& limits,
                  const MonotonicSigns& monotonic, const Groups& groups, int n_threads) {
  if (monotonic) throw std::invalid_argument("monotonic must be None with several targets");
  const DrawnRows rows = rows_of(codes, kept, weight);
  const auto table = sized("y", y, static_cast<std::size_t>(rows.n_rows()));
  const auto q = static_cast<std::size_t>(table.width);
  if (q == 0) throw std::invalid_argument("y must have at least one column");
  const Columns columns{table, sized("n_classes", n_classes, q), sized("factor", factor, q),
                        n_classes ? criterion_of(criterion) : Criterion::squared};
  for (std::size_t k = 0; k < q; ++k) {
    const bool is_valid = columns.factor[k] >= 0.0 && columns.factor[k] < kInfinity;
    if (!is_valid) throw std::invalid_argument("shares must be finite and not negative");
    if (!n_classes) continue;
    const std::int32_t most = columns.n_classes[k];
    if (most < 1) throw std::invalid_argument("n_classes must be at least 1");
    for (std::int64_t i = 0; i < table.n_rows; ++i) {
      const double one = table.row(i)[k];
      if (!(one >= 0.0 && one < most && one == std::floor(one)))
        throw std::invalid_argument("y must hold classes");
    }
  }
  return grow_bags(rows, columns, bagged,
                   growth_of(limits, monotonic, groups, rows.bins.n_bins.size(), n_threads));
}

// samples, number of their first rows that edges are told from, seeds, max_features_of_tree.
using Words = In<std::uint64_t, 1>;
using Sampled = std::tuple<In<std::int32_t, 2>, std::int64_t, Words, std::int64_t, Words>;

auto grow_samples(const Doubles2& X, const Bytes& category, const std::optional<Doubles>& weight,
                  const Ints& y, std::int32_t n_classes, const std::string& criterion,
                  const Sampled& sampled, const Limits& limits, const MonotonicSigns& monotonic,
                  const Groups& groups, int n_threads) {
  const auto& [samples, n_deciding, seeds, max_features_of_tree, targets] = sampled;
  const auto table = rows(X);
  const SampledRows all{table,
                        sized("category", category, X.shape(1)),
                        sized("weight", weight, X.shape(0)),
                        view(samples),
                        n_deciding,
                        sized("seeds", seeds, samples.shape(0)),
                        sized("targets", targets, X.shape(0))};
  if (n_deciding < 1 || samples.shape(1) < 1)
    throw std::invalid_argument("samples must have at least one row each that decides");
  expect_codes("samples", std::span(samples.data(), samples.size()), table.n_rows);
  const Classes response = classes_of(y, X.shape(0), n_classes, criterion);
  const BinnedGrowth growth = growth_of(limits, monotonic, groups, X.shape(1), n_threads);
  const std::int64_t most_of_tree = std::max<std::int64_t>(max_features_of_tree, 1);
  return grown([&] { return certree::grow_samples(all, most_of_tree, growth, response); });
}

auto unit_of_weights(const Doubles& weight) {
  const WeightUnit unit = run([&] { return certree::unit_of_weights(view(weight)); });
  return std::tuple(unit.largest, unit.common);
}

auto whole_weights(const Doubles& weight, double largest, double common) {
  if (!(largest > 0.0) || !(common >= 0.0))
    throw std::invalid_argument("largest must be positive, and common not negative");
  const auto loop = [&](std::span<double> whole) {
    certree::whole_weights(view(weight), {largest, common}, whole);
  };
  return run(loop, Column<double>(weight.size()));
}

auto draw_rows(std::int64_t n_rows, const Draws& draws, std::int64_t tree) {
  if (n_rows < 1) throw std::invalid_argument("at least one row is needed");
  const Drawing drawing = drawing_of(draws, static_cast<std::size_t>(n_rows));
  const auto loop = [&](std::span<std::int32_t> count) {
    certree::draw_rows(drawing, tree, count);
  };
  return run(loop, Column<std::int32_t>(n_rows));
}

}  // namespace

void bind_binned(nb::module_& core) {
  core.def("bin_features", &bin_features, "features"_array, "sample"_array,
           "category"_array_or_none, "wanted"_a, "n_threads"_a,
           "Codes of the values of each feature, and what is kept of the bins.");
  const auto bin_stored_doc = "The same where values are 0 that are not stored.";
  core.def("bin_sparse_features", &bin_stored<float>, "columns"_array, "sample"_array, "wanted"_a,
           "n_threads"_a, bin_stored_doc);
  core.def("bin_sparse_features", &bin_stored<double>, "columns"_array, "sample"_array, "wanted"_a,
           "n_threads"_a, bin_stored_doc);
  core.def("coarsen_bins", &coarsen, "codes"_array, "kept"_a, "n_edges"_a, "key"_a,
           "order"_array_or_none,
           "Codes, numbers, and ends of bins that are joined but at some edges drawn by a key.");
  core.def("grow_gradient_tree", &grow_gradients, "codes"_array, "kept"_a, "features"_array,
           "growing"_array, "others"_array, "gradient"_array, "hessian"_array, "l2"_a,
           "min_hessian"_a, "limits"_a, "monotonic"_array_or_none, "groups"_array_or_none,
           "n_threads"_a,
           "Columns of a tree grown from sums of gradients and Hessians, its sums, and leaves.");
  core.def("grow_class_trees", &grow_classes, "codes"_array, "kept"_a, "weight"_array_or_none,
           "y"_array, "n_classes"_a, "criterion"_a, "bags"_a, "limits"_a, "monotonic"_array_or_none,
           "groups"_array_or_none, "n_threads"_a,
           "Columns of trees on classes, and weights of classes by node.");
  core.def("grow_number_trees", &grow_numbers, "codes"_array, "kept"_a, "weight"_array_or_none,
           "target"_array, "criterion"_a, "bags"_a, "limits"_a, "monotonic"_array_or_none,
           "groups"_array_or_none, "n_threads"_a,
           "Columns of trees on numbers, and the weight and the sum of every node.");
  core.def("grow_output_trees", &grow_columns, "codes"_array, "kept"_a, "weight"_array_or_none,
           "y"_array, "n_classes"_array_or_none, "factor"_array, "criterion"_a, "bags"_a,
           "limits"_a, "monotonic"_array_or_none, "groups"_array_or_none, "n_threads"_a,
           "The same of several columns of numbers or classes, and the weight and sums of nodes.");
  core.def("grow_sampled_trees", &grow_samples, "X"_array, "category"_array, "weight"_array_or_none,
           "y"_array, "n_classes"_a, "criterion"_a, "samples"_a, "limits"_a,
           "monotonic"_array_or_none, "groups"_array_or_none, "n_threads"_a,
           "The same of trees that grow on samples of rows, each in bins of its own.");
  core.def(
      "find_weight_unit", &unit_of_weights, "weight"_array,
      "The largest weight, and a number of which all weights are multiples; 0: there is none.");
  core.def("scale_weights_to_integers", &whole_weights, "weight"_array, "largest"_a, "common"_a,
           "Weights as integers, by what unit_of_weights() says of all weights.");
  core.def("draw_rows", &draw_rows, "n_rows"_a, "draws"_a, "tree"_a,
           "How often each row was drawn for a tree.");
}

}  // namespace certree::bindings
