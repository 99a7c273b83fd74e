// Whether the categories of a cell differ by more than chance explains.
//
// The best division of categories orders them by the response itself, and finds something in any
// noise: the more, the more categories there are. Let B be the squared distance between the means
// of the k categories of a cell and the mean of the cell, summed over its rows, and T that of the
// rows. If the responses were dealt to the rows at random, B were about d * v with d = k - 1 and
// v = T / (n - 1), and strayed from it by about sqrt(2 d) * v. Only what is three of these above is
// divided. A few categories are free, d = k - 6: their order is hardly more of a choice than the
// threshold of a number, and small cells need them.
#pragma once

#include "grow/two_sets.hpp"

namespace certree {

// Both chosen on public tables.
inline constexpr std::size_t kFreeCategories = 6;
inline constexpr double kDeviations = 3.0;

// What is above by rounding alone is not above.
inline constexpr double kRounding = 1.0 + 1e-9;

// Of the rows of a cell.
struct Scatter {
  double row = 1.0;    // weight of one: that of n equal rows whose mean is as uncertain
  double total = 0.0;  // T
};

// B: the squared distance of the groups' means from that of all, summed over rows.
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

// total: (width,) the sums of all groups, of which there are more than the free ones.
inline bool beyond_chance(const Groups& groups, const std::vector<double>& total,
                          const Scatter& scatter) {
  const auto d = static_cast<double>(groups.size() - kFreeCategories);
  const double unit = scatter.row * scatter.total / (total[0] - scatter.row);
  const double chance = (d + kDeviations * std::sqrt(2.0 * d)) * unit;
  return scatter_between(groups, total) > chance * kRounding;
}

}  // namespace certree
