// The doors of bins, and of growth from sums over them.
#include "bind_bins.hpp"
#include "grow/coarser.hpp"
#include "grow/counted.hpp"

namespace certree::door {
namespace {

using Slopes = std::optional<In<std::int8_t, 1>>;

auto bin_features(const Doubles2& X, const Ints& sample, const std::optional<Bytes>& category,
                  bool fine_ends, int n_threads) {
  const auto x = rows(X);
  const auto flags = sized("category", category, X.shape(1));
  expect_codes("sample", view(sample), x.n_rows);
  BinColumns kept;
  const auto loop = [&](Table<std::uint8_t> codes) {
    kept = certree::bin_features(x, view(sample), flags, fine_ends, n_threads, codes);
  };
  auto codes = run(loop, Rows<std::uint8_t>(X.shape(1), X.shape(0)));
  return std::tuple(
      codes, owned(std::move(kept.n_bins)), owned(std::move(kept.low), X.shape(1), kMostBins),
      owned(std::move(kept.high), X.shape(1), kMostBins), owned(std::move(kept.level_start)),
      owned(std::move(kept.levels)), owned(std::move(kept.level_bin)));
}

BinnedTable binned(const Codes& codes, const Kept& kept) {
  return {kept_bins(kept, codes.shape(0)), view(codes)};
}

auto coarsen(const Codes& codes, const Kept& kept, std::int64_t n_edges, std::uint64_t key) {
  const BinnedTable table = binned(codes, kept);
  const std::size_t p = codes.shape(0);
  if (n_edges < 1) throw std::invalid_argument("n_edges must be at least 1");
  CoarserBins bins;
  const auto loop = [&](Table<std::uint8_t> coarser) {
    bins = certree::coarsen(table, n_edges, key, coarser);
  };
  auto coarser = run(loop, Rows<std::uint8_t>(p, codes.shape(1)));
  return std::tuple(coarser, owned(std::move(bins.n_bins)),
                    owned(std::move(bins.low), p, kMostBins),
                    owned(std::move(bins.high), p, kMostBins));
}

// max_leaves, max_depth, min_rows, min_hessian, l2, min_gain, best_first.
using Limits = std::tuple<std::int64_t, std::int32_t, std::int64_t, double, double, double, bool>;

Counting counting(const Ints& features, const Limits& limits, const Slopes& monotonic,
                  const std::optional<Codes>& groups, std::size_t p, int n_threads) {
  const auto [max_leaves, max_depth, min_rows, min_hessian, l2, min_gain, best_first] = limits;
  expect_codes("features", view(features), static_cast<std::int64_t>(p));
  Counting asked{view(features),
                 max_leaves,
                 max_depth,
                 min_rows,
                 min_hessian,
                 l2,
                 min_gain,
                 best_first,
                 sized("monotonic", monotonic, p),
                 {},
                 n_threads};
  if (groups) asked.groups = sized("groups", *groups, groups->shape(0), p);
  return asked;
}

// The columns of a tree, its sums (m, lanes), and the leaf of each row, -1 where it is not given.
template <class Grow>
auto grown(const Codes& codes, const Ints& growing, const Ints& others, const Grow& grow) {
  const auto n = static_cast<std::int64_t>(codes.shape(1));
  if (codes.shape(1) > 2147483647u)
    throw std::invalid_argument("codes have more than 2147483647 rows");
  if (growing.size() == 0) throw std::invalid_argument("no row grows the tree");
  expect_codes("rows", view(growing), n);
  expect_codes("others", view(others), n);
  CountedTree tree;
  const auto loop = [&](std::span<std::int32_t> leaf) {
    fill(leaf, kLeaf);
    tree = grow(CountedRows{view(growing), view(others)}, leaf);
  };
  auto leaf = run(loop, Column<std::int32_t>(n));
  TreeColumns& columns = tree.columns;
  const std::size_t m = columns.left.size(), n_lanes = tree.sums.size() / m;
  return std::tuple(
      std::tuple(owned(std::move(columns.feature)), owned(std::move(columns.threshold)),
                 owned(std::move(columns.left)), owned(std::move(columns.chain)),
                 owned(std::move(columns.missing_left)), owned(std::move(columns.category_start)),
                 owned(std::move(columns.categories)), nb::none()),
      owned(std::move(tree.sums), m, n_lanes), leaf);
}

auto grow_gradients(const Codes& codes, const Kept& kept, const Ints& features, const Ints& growing,
                    const Ints& others, const Doubles& gradient, const Doubles& hessian,
                    const Limits& limits, const Slopes& monotonic,
                    const std::optional<Codes>& groups, int n_threads) {
  const BinnedTable table = binned(codes, kept);
  const Counting asked = counting(features, limits, monotonic, groups, codes.shape(0), n_threads);
  const auto g = sized("gradient", gradient, codes.shape(1));
  const auto h = sized("hessian", hessian, codes.shape(1));
  return grown(codes, growing, others, [&](const CountedRows& rows, std::span<std::int32_t> leaf) {
    return certree::grow_gradients(table, rows, asked, g, h, leaf);
  });
}

auto grow_classes(const Codes& codes, const Kept& kept, const Ints& features, const Ints& growing,
                  const Ints& others, const Ints& y, std::int32_t n_classes,
                  const std::optional<Doubles>& weight, const std::string& criterion,
                  const Limits& limits, const Slopes& monotonic, const std::optional<Codes>& groups,
                  int n_threads) {
  const BinnedTable table = binned(codes, kept);
  const Counting asked = counting(features, limits, monotonic, groups, codes.shape(0), n_threads);
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  const ClassResponse response{sized("y", y, codes.shape(1)), n_classes,
                               sized("weight", weight, codes.shape(1)), criterion_of(criterion)};
  expect_codes("y", response.y, n_classes);
  return grown(codes, growing, others, [&](const CountedRows& rows, std::span<std::int32_t> leaf) {
    return certree::grow_classes(table, rows, asked, response, leaf);
  });
}

}  // namespace

void bind_counted(nb::module_& core) {
  core.def("bin_features", &bin_features, "X"_array, "sample"_array, "category"_array_or_none,
           "fine_ends"_a, "n_threads"_a,
           "Codes of the values of each feature, and what is kept of the bins.");
  core.def("coarsen", &coarsen, "codes"_array, "kept"_a, "n_edges"_a, "key"_a,
           "Codes, numbers, and ends of bins that are joined but at some edges drawn by a key.");
  core.def("grow_gradients", &grow_gradients, "codes"_array, "kept"_a, "features"_array,
           "growing"_array, "others"_array, "gradient"_array, "hessian"_array, "limits"_a,
           "monotonic"_array_or_none, "groups"_array_or_none, "n_threads"_a,
           "Columns of a tree grown from sums of gradients and Hessians, its sums, and leaves.");
  core.def("grow_classes", &grow_classes, "codes"_array, "kept"_a, "features"_array,
           "growing"_array, "others"_array, "y"_array, "n_classes"_a, "weight"_array_or_none,
           "criterion"_a, "limits"_a, "monotonic"_array_or_none, "groups"_array_or_none,
           "n_threads"_a,
           "Columns of a tree grown from weights of classes, its sums, and the leaf of each row.");
}

}  // namespace certree::door
