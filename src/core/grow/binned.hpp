// Rows as codes of their bins, and what a cut between bins is on the values.
#pragma once

#include "grow/bins.hpp"
#include "grow/grow.hpp"
#include "grow/growth.hpp"

namespace certree {

// What is known of the bins of p features.
struct KeptBins {
  std::span<const std::int32_t> n_bins;       // (p,)
  std::span<const std::int64_t> bin_start;    // (p + 1,) there may be room behind the bins
  std::span<const double> low, high;          // smallest and largest value in each bin
  std::span<const std::uint8_t> category;     // (p,) whether a feature holds categories
  std::span<const std::int64_t> level_start;  // (p + 1,)
  std::span<const std::int32_t> levels;       // ascending within a feature
  std::span<const std::uint8_t> level_bin;    // bin of each level

  std::size_t start(std::integral auto j) const {
    return static_cast<std::size_t>(bin_start[static_cast<std::size_t>(j)]);
  }
  const double* low_of(std::integral auto j) const { return low.data() + start(j); }
  const double* high_of(std::integral auto j) const { return high.data() + start(j); }
};

// Codes of a table by feature, (p, n), and by row, (n, p); or no rows of the second.
struct CodesBothWays {
  Table<const std::uint8_t> of_features, of_rows;
};

// Codes of a table most of whose values are 0: of those that lie in other bins than 0 does.
struct StoredCodes {
  std::span<const std::int64_t> start;  // (p + 1,) where those of each feature start
  std::span<const std::int32_t> row;    // ascending within a feature
  std::span<const std::uint8_t> code;
  std::span<const std::uint8_t> zero;  // (p,) code of 0
  std::int64_t n_rows = 0;
  // What bins have become since codes were stored, one for each; or empty: they are what they were.
  std::span<const std::uint8_t> into{};
};

struct BinnedTable : KeptBins {
  CodesBothWays codes;
  StoredCodes stored{};  // or these

  bool is_sparse() const { return !stored.start.empty(); }
  std::int64_t n_rows() const { return is_sparse() ? stored.n_rows : codes.of_features.width; }
  // The code that a stored one has become.
  std::uint8_t code_now(std::int32_t feature, std::uint8_t code) const {
    return stored.into.empty() || code == kMissingBin ? code : stored.into[start(feature) + code];
  }
};

// Rows with codes up to `bin` are those with values up to `value`.
struct BinThreshold {
  double value;
  std::size_t bin;
};

// The threshold of a cut between the last bin that goes left and the first one that goes right; 0:
// none does. Other bins may lie between them. Of the gaps between neighbouring bins the threshold
// is the middle of the one in which, or nearest to which, the middle of the whole gap lies.
inline BinThreshold threshold_behind(const KeptBins& bins, std::int32_t feature, std::size_t bin,
                                     std::size_t next) {
  const double *const low = bins.low_of(feature), *const high = bins.high_of(feature);
  const auto n_bins = static_cast<std::size_t>(bins.n_bins[static_cast<std::size_t>(feature)]);
  const double value = next > bin ? between(high[bin], low[next]) : high[bin];
  while (bin + 1 < n_bins && low[bin + 1] <= value) ++bin;
  return {threshold_between(high[bin], bin + 1 < n_bins ? low[bin + 1] : kInfinity), bin};
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
