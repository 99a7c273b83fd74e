// Gaps between the values of features in which thresholds lie.
#pragma once

#include "arrays.hpp"

namespace certree {

// Thresholds of several features. Those of features[i] are value[start[i]], ...,
// value[start[i + 1] - 1], ascending.
struct FeatureThresholds {
  std::span<const std::int32_t> features;
  std::span<const std::int64_t> start;
  std::span<const double> value;
};

// Finds the largest value of its feature that is not above each threshold, and the smallest value
// above it; -inf and inf where there is none. NaN is no value. low, high: results, one for each
// threshold.
template <class Real>
void find_gaps(Table<const Real> rows, const FeatureThresholds& thresholds, int n_threads,
               std::span<double> low, std::span<double> high);

}  // namespace certree
