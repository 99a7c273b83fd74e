// What the nodes of a tree vote for, and what all their votes come to.
#pragma once

#include "tree.hpp"

namespace certree {

// What nodes vote for: the rows of frequency (m, n_classes), which sum to 1, or, if it has none,
// labels (m,). Numbers have one "class", whose frequency is the mean.
struct Values {
  std::span<const std::int32_t> label;
  Table<const double> frequency;
  std::int64_t n_classes;

  double operator()(std::size_t v, std::int64_t k) const {
    return frequency.data ? frequency.row(v)[k] : static_cast<double>(label[v] == k);
  }
};

// score: (m, n_classes), path sums of weight[v] * value(v, k).
void push_down(Shape tree, std::span<const double> weight, const Values& values,
               Table<double> score);

// moved: (m,) the values of nodes, value (m,), moved as little as it takes for the values of every
// pruning's leaves to rise (slope 1) or fall (slope -1) along each feature: slope int8 (p,).
// The middle between two children bounds all values below them.
void make_monotone(Shape tree, std::span<const std::int32_t> feature,
                   std::span<const std::int8_t> slope, std::span<const double> value,
                   std::span<double> moved);

}  // namespace certree
