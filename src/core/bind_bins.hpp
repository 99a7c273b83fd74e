// What doors of growth from bins take.
#pragma once

#include "bind.hpp"
#include "grow/binned_growth.hpp"

namespace certree::door {

using Bytes = In<std::uint8_t, 1>;
using Codes = In<std::uint8_t, 2>;

// n_bins, low, high, category, level_start, levels, level_bin.
using Kept = std::tuple<Ints, Doubles2, Doubles2, Bytes, In<std::int64_t, 1>, Ints, Bytes>;

inline KeptBins kept_bins(const Kept& kept, std::size_t p) {
  const auto& [n_bins, low, high, category, level_start, levels, level_bin] = kept;
  const std::size_t most = kMostBins;
  expect_codes("n_bins", sized("n_bins", n_bins, p), kMostBins + 1);
  const auto starts = sized("level_start", level_start, p + 1);
  if (!std::ranges::is_sorted(starts) || starts.front() != 0 ||
      starts.back() != static_cast<std::int64_t>(levels.size()))
    throw std::invalid_argument("level_start must ascend from 0 to the number of levels");
  return {view(n_bins),
          sized("low", low, p, most),
          sized("high", high, p, most),
          sized("category", category, p),
          starts,
          view(levels),
          sized("level_bin", level_bin, levels.size())};
}

using Slopes = std::optional<In<std::int8_t, 1>>;
using Groups = std::optional<Codes>;
// max_leaves, max_depth, min_split, min_rows, min_gain, order, max_features, random_cuts.
using Limits = std::tuple<std::int64_t, std::int32_t, std::int64_t, std::int64_t, double,
                          std::string, std::int64_t, bool>;

inline BinnedGrowth growth_of(const Limits& limits, const Slopes& monotonic, const Groups& groups,
                              std::size_t p, int n_threads) {
  const auto& [max_leaves, max_depth, min_split, min_rows, min_gain, order, max_features,
               random_cuts] = limits;
  BinnedGrowth growth{max_leaves,
                      max_depth,
                      std::max<std::int64_t>(min_split, 2),
                      min_rows,
                      min_gain,
                      order == "best"    ? Order::best
                      : order == "depth" ? Order::depth
                                         : Order::level,
                      max_features,
                      random_cuts,
                      sized("monotonic", monotonic, p),
                      {},
                      n_threads};
  if (groups) growth.groups = sized("groups", *groups, groups->shape(0), p);
  return growth;
}

// The columns of many trees, and where each starts.
inline auto handed_over(TreeColumns&& nodes, std::vector<std::int64_t>&& root) {
  return std::tuple(owned(std::move(nodes.feature)), owned(std::move(nodes.threshold)),
                    owned(std::move(nodes.left)), owned(std::move(nodes.missing_left)),
                    owned(std::move(nodes.category_start)), owned(std::move(nodes.categories)),
                    owned(std::move(root)));
}

// Kind, number of draws, seed.
using Draws = std::tuple<std::string, std::int64_t, std::uint64_t>;

inline Drawing drawing_of(const Draws& draws, std::size_t n_rows) {
  const auto& [kind, n_draws, seed] = draws;
  if (n_draws < 1) throw std::invalid_argument("at least one row must be drawn");
  if (kind == "repeated") return {Sampling::repeated, n_draws, seed};
  if (std::cmp_greater(n_draws, n_rows)) throw std::invalid_argument("more draws than rows");
  return {kind == "all" ? Sampling::all : Sampling::some, n_draws, seed};
}

inline Criterion criterion_of(const std::string& name) {
  if (name == "gini") return Criterion::gini;
  if (name == "entropy") return Criterion::entropy;
  throw std::invalid_argument("criterion must be \"gini\" or \"entropy\", got \"" + name + "\"");
}

}  // namespace certree::door
