// A test whether the categories of a node differ by more than chance explains.
//
// The best split of categories sorts them by the response itself, so it finds a gain in pure noise,
// and a larger one the more categories there are. Let B be the squared distance of the means of the
// k categories from the mean of the node, summed over its rows, and T that of the rows themselves.
// If responses were assigned to rows at random, B would have a mean of about d v, with d = k - 1
// and v = T / (n - 1), and a standard deviation of about sqrt(2 d) v. A node is split only if B
// exceeds the mean by three standard deviations. Six categories are free, d = k - 6: to order few
// categories is hardly more of a choice than the threshold of a number, and small nodes need such
// splits.
#pragma once

#include "grow/two_sets.hpp"

namespace certree {

// Both were chosen on public data sets.
inline constexpr std::size_t kFreeCategories = 6;
inline constexpr double kDeviations = 3.0;

// Relative tolerance for rounding errors of B.
inline constexpr double kRounding = 1.0 + 1e-9;

// Scatter of the rows of a node.
struct Scatter {
  double row = 1.0;  // weight of a row: if rows differ, of n equal rows whose mean is as uncertain
  double total = 0.0;  // T
};

// Returns B. groups: one for each category; total: (width,) their sums.
inline double scatter_between(const Groups& groups, const std::vector<double>& total) {
  double between = 0.0;
  for (const std::size_t g : indices(groups.size(), groups.width())) {
    const double weight = groups.sums(g)[0];
    for (std::size_t k = 1; k < total.size(); ++k) {
      const double beyond = groups.sums(g)[k] - weight * (total[k] / total[0]);
      between += beyond * beyond / weight;
    }
  }
  return between;
}

// Returns whether B is larger than chance explains. There must be more than kFreeCategories groups.
inline bool beyond_chance(const Groups& groups, const std::vector<double>& total,
                          const Scatter& scatter) {
  const auto d = static_cast<double>(groups.size() - kFreeCategories);
  const double unit = scatter.row * scatter.total / (total[0] - scatter.row);
  const double chance = (d + kDeviations * std::sqrt(2.0 * d)) * unit;
  return scatter_between(groups, total) > chance * kRounding;
}

}  // namespace certree
