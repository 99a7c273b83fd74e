// Arguments that the bindings of growth from bins share.
#pragma once

#include <nanobind/stl/vector.h>

#include "bind.hpp"
#include "grow/binned_growth.hpp"
#include "grow/bins.hpp"

namespace certree::bindings {

using Bytes = In<std::uint8_t, 1>;
using Codes = In<std::uint8_t, 2>;

// A column of any order in memory.
template <class Real>
using Values = nb::ndarray<const Real, nb::ndim<1>, nb::device::cpu>;
using Features = std::vector<std::variant<Values<double>, Values<float>>>;

inline std::size_t length_of(const Features& features) {
  if (features.empty()) throw std::invalid_argument("no feature is given");
  const std::size_t n = std::visit([](const auto& one) { return one.shape(0); }, features[0]);
  if (n > 2147483647u) throw std::invalid_argument("features have more than 2147483647 rows");
  return n;
}

inline std::vector<FeatureValues> values_of(const Features& features) {
  const std::size_t n = length_of(features);
  std::vector<FeatureValues> values;
  for (const auto& feature : features)
    values.push_back(std::visit(
        [&](const auto& one) -> FeatureValues {
          expect_length("a feature", one.shape(0), n);
          return Strided{one.data(), one.stride(0)};
        },
        feature));
  return values;
}

// Where the values of each feature start, their rows and codes, codes of 0, and the number of rows.
using Stored = std::tuple<In<std::int64_t, 1>, Ints, Bytes, Bytes, std::int64_t>;

// n_bins, bin_start, low, high, category, category_start, category_codes, category_bin.
using Kept = std::tuple<Ints, In<std::int64_t, 1>, Doubles, Doubles, Bytes, In<std::int64_t, 1>,
                        Ints, Bytes>;

inline KeptBins kept_bins(const Kept& kept, std::size_t p) {
  const auto& [n_bins, bin_start, low, high, category, category_start, category_codes,
               category_bin] = kept;
  expect_codes("n_bins", sized("n_bins", n_bins, p), kMostBins + 1);
  const auto bins = starts_of("bin_start", bin_start, p, low.size());
  for (std::size_t j = 0; j < p; ++j)
    if (bins[j + 1] - bins[j] < n_bins.data()[j])
      throw std::invalid_argument("bin_start leaves too little room for the bins");
  return {view(n_bins),
          bins,
          view(low),
          sized("high", high, low.size()),
          sized("category", category, p),
          starts_of("category_start", category_start, p, category_codes.size()),
          view(category_codes),
          sized("category_bin", category_bin, category_codes.size())};
}

// Codes by feature, (p, n), and the same by row, (n, p), or no rows of the second.
using BothWays = std::tuple<Codes, Codes>;

inline CodesBothWays both_ways(const Codes& codes, const Codes& of_rows) {
  if (of_rows.shape(0) == 0) return {view(codes), {}};
  return {view(codes), sized("codes_of_rows", of_rows, codes.shape(1), codes.shape(0))};
}

// Codes of p features, dense or stored, and what is kept of their bins.
using AnyCodes = std::variant<Codes, BothWays, Stored>;

inline std::size_t width_of(const AnyCodes& codes) {
  if (const auto* dense = std::get_if<Codes>(&codes)) return dense->shape(0);
  if (const auto* both = std::get_if<BothWays>(&codes)) return std::get<0>(*both).shape(0);
  return std::get<3>(std::get<Stored>(codes)).size();
}

inline BinnedTable binned(const AnyCodes& codes, const Kept& kept) {
  const std::size_t p = width_of(codes);
  BinnedTable table{kept_bins(kept, p), {}, {}};
  if (const auto* dense = std::get_if<Codes>(&codes)) {
    table.codes = {view(*dense), {}};
  } else if (const auto* both = std::get_if<BothWays>(&codes)) {
    table.codes = std::apply(both_ways, *both);
  } else {
    const auto& [start, row, code, zero, n_rows] = std::get<Stored>(codes);
    table.stored = {starts_of("start", start, p, row.size()), view(row),
                    sized("code", code, row.size()), view(zero), n_rows};
    expect_codes("row", view(row), n_rows);
    for (std::size_t j = 0; j < p; ++j) {
      const std::int32_t n_bins = table.n_bins[j];
      unsigned beyond = n_bins > 0 && table.stored.zero[j] >= n_bins;
      for (std::int64_t k = table.stored.start[j]; k < table.stored.start[j + 1]; ++k) {
        const std::uint8_t one = code.data()[k];
        beyond |= (one >= n_bins) & (one != kMissingBin);
      }
      if (beyond) throw std::invalid_argument("code must be those of bins");
    }
  }
  if (table.n_rows() > 2147483647)
    throw std::invalid_argument("codes have more than 2147483647 rows");
  return table;
}

using MonotonicSigns = std::optional<In<std::int8_t, 1>>;
using Groups = std::optional<Codes>;
// max_leaves, max_depth, min_split, min_rows, min_gain, order, max_features, random_splits,
// ties_by_root, order of features.
using Limits = std::tuple<std::int64_t, std::int32_t, std::int64_t, std::int64_t, double,
                          std::string, std::int64_t, bool, bool, std::optional<Ints>>;

inline BinnedGrowth growth_of(const Limits& limits, const MonotonicSigns& monotonic,
                              const Groups& groups, std::size_t p, int n_threads) {
  const auto& [max_leaves, max_depth, min_split, min_rows, min_gain, order, max_features,
               random_splits, ties_by_root, feature_order] = limits;
  BinnedGrowth growth{max_leaves,
                      max_depth,
                      std::max<std::int64_t>(min_split, 2),
                      min_rows,
                      min_gain,
                      order == "best"    ? Order::best
                      : order == "depth" ? Order::depth
                                         : Order::breadth,
                      max_features,
                      random_splits,
                      ties_by_root,
                      sized("monotonic", monotonic, p),
                      {},
                      n_threads,
                      order_of_features(feature_order, p)};
  if (groups) growth.groups = sized("groups", *groups, groups->shape(0), p);
  return growth;
}

// The columns of many trees, and where each starts.
inline auto handed_over(TreeColumns&& nodes, std::vector<std::int64_t>&& root) {
  return std::tuple(owned(std::move(nodes.feature)), owned(std::move(nodes.threshold)),
                    owned(std::move(nodes.left)), owned(std::move(nodes.default_left)),
                    owned(std::move(nodes.category_start)), owned(std::move(nodes.categories)),
                    owned(std::move(root)));
}

// Kind, number of draws, seed, and the group of each row.
using Draws = std::tuple<std::string, std::int64_t, std::uint64_t, std::optional<Ints>>;

inline Drawing drawing_of(const Draws& draws, std::size_t n_rows) {
  const auto& [kind, n_draws, seed, groups] = draws;
  if (n_draws < 1) throw std::invalid_argument("at least one row must be drawn");
  const Sampling sampling = kind == "repeated" ? Sampling::repeated
                            : kind == "all"    ? Sampling::all
                                               : Sampling::some;
  Drawing drawing{sampling, n_draws, seed, sized("group", groups, n_rows)};
  if (groups) {
    expect_codes("group", drawing.group, std::ssize(drawing.group));
    std::vector<std::int64_t> size(n_rows);
    for (const std::int32_t one : drawing.group) {
      drawing.n_groups = std::max<std::int64_t>(drawing.n_groups, one + 1);
      ++size[static_cast<std::size_t>(one)];
    }
    drawing.most_rows = n_draws * std::ranges::max(size);
  }
  const std::size_t n_units = groups ? static_cast<std::size_t>(drawing.n_groups) : n_rows;
  if (sampling != Sampling::repeated && std::cmp_greater(n_draws, n_units))
    throw std::invalid_argument("more draws than rows");
  return drawing;
}

inline Criterion criterion_of(const std::string& name) {
  if (name == "gini") return Criterion::gini;
  if (name == "entropy") return Criterion::entropy;
  throw std::invalid_argument("criterion must be \"gini\" or \"entropy\", got \"" + name + "\"");
}

}  // namespace certree::bindings
