// Rows as codes of their bins, and what a cut between bins is on the values.
#pragma once

#include "grow/bins.hpp"
#include "grow/grow.hpp"
#include "grow/growth.hpp"

namespace certree {

// What is known of the bins of p features.
struct KeptBins {
  std::span<const std::int32_t> n_bins;       // (p,)
  Table<const double> low, high;              // (p, 255) smallest and largest value in each bin
  std::span<const std::uint8_t> category;     // (p,) whether a feature holds categories
  std::span<const std::int64_t> level_start;  // (p + 1,)
  std::span<const std::int32_t> levels;       // ascending within a feature
  std::span<const std::uint8_t> level_bin;    // bin of each level
};

struct BinnedTable : KeptBins {
  Table<const std::uint8_t> codes;  // (p, n)
};

// Rows with codes up to `bin` are those with values up to `value`.
struct BinThreshold {
  double value;
  std::size_t bin;
};

// The middle of the gap between the last bin that goes left and the first one that goes right; 0:
// none does. Other bins may lie in the gap, which must not be cut in two.
inline BinThreshold threshold_behind(const KeptBins& bins, std::int32_t feature, std::size_t bin,
                                     std::size_t next) {
  const double *const low = bins.low.row(feature), *const high = bins.high.row(feature);
  const auto n_bins = static_cast<std::size_t>(bins.n_bins[static_cast<std::size_t>(feature)]);
  double value = next > bin ? between(high[bin], low[next]) : high[bin];
  while (bin + 1 < n_bins && low[bin + 1] <= value) ++bin;
  if (high[bin] > value) value = between(high[bin], low[bin + 1]);
  return {value, bin};
}

// The levels of a feature that go to the other side than missing values, ascending. goes_left: by
// code.
inline std::vector<std::int32_t> levels_against_missing(
    const KeptBins& bins, std::int32_t feature, std::span<const std::uint8_t, 256> goes_left) {
  const auto start = [&](std::int64_t j) {
    return static_cast<std::size_t>(bins.level_start[static_cast<std::size_t>(j)]);
  };
  std::vector<std::int32_t> levels;
  for (std::size_t i = start(feature); i < start(std::int64_t{feature} + 1); ++i)
    if (goes_left[bins.level_bin[i]] != goes_left[kMissingBin]) levels.push_back(bins.levels[i]);
  return levels;
}

}  // namespace certree
