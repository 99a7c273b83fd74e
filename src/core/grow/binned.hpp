// Binned tables, and the thresholds and category sets that splits between bins stand for.
#pragma once

#include "grow/bins.hpp"
#include "grow/grow.hpp"
#include "grow/growth.hpp"

namespace certree {

// The bins of p features. Category codes number the categories of a categorical feature.
struct KeptBins {
  std::span<const std::int32_t> n_bins;     // (p,)
  std::span<const std::int64_t> bin_start;  // (p + 1,) a feature may have unused entries at the end
  std::span<const double> low, high;        // (bin_start[p],) smallest and largest value
  std::span<const std::uint8_t> category;   // (p,) whether a feature is categorical
  std::span<const std::int64_t> category_start;  // (p + 1,)
  std::span<const std::int32_t> category_codes;  // (category_start[p],) ascending within a feature
  std::span<const std::uint8_t> category_bin;    // bin of each category

  std::size_t start(std::integral auto j) const {
    return static_cast<std::size_t>(bin_start[static_cast<std::size_t>(j)]);
  }
  const double* low_of(std::integral auto j) const { return low.data() + start(j); }
  const double* high_of(std::integral auto j) const { return high.data() + start(j); }
};

// The bins of a table by feature, (p, n), and also by row, (n, p), or empty.
struct CodesBothWays {
  Table<const std::uint8_t> of_features, of_rows;
};

// The stored values of a sparse table row by row, each as the place of its bin; see
// BinnedTable::first_place.
struct PlacesByRow {
  std::vector<std::int64_t> start;   // (n_rows + 1,) where the values of a row start
  std::vector<std::uint32_t> place;  // ascending within a row

  std::span<const std::uint32_t> of(std::size_t row) const {
    return {place.data() + start[row], static_cast<std::size_t>(start[row + 1] - start[row])};
  }
};

// The bins of a sparse table. Only values that are in another bin than 0 are stored.
struct StoredCodes {
  std::span<const std::int64_t> start;  // (p + 1,) where the stored values of a feature start
  std::span<const std::int32_t> row;    // ascending within a feature
  std::span<const std::uint8_t> code;
  std::span<const std::uint8_t> zero;  // (p,) bin of 0
  std::int64_t n_rows = 0;
  // The coarser bin that each stored bin has been merged into; or empty if none has.
  std::span<const std::uint8_t> into{};
  const PlacesByRow* by_row = nullptr;  // needed to grow a tree on gradients
};

struct BinnedTable : KeptBins {
  CodesBothWays codes;
  StoredCodes stored{};  // instead of codes if the table is sparse

  bool is_sparse() const { return !stored.start.empty(); }
  std::int64_t n_rows() const { return is_sparse() ? stored.n_rows : codes.of_features.width; }
  // Returns the place of the first bin of a feature, in a numbering of the stored bins of all
  // features. The place of missing values is the last one of a feature.
  std::size_t first_place(std::integral auto j) const {
    return start(j) + static_cast<std::size_t>(j);
  }
  // Returns the coarser bin that a stored bin has been merged into.
  std::uint8_t code_now(std::int32_t feature, std::uint8_t code) const {
    return stored.into.empty() || code == kMissingBin ? code : stored.into[start(feature) + code];
  }
};

// A threshold: rows in bins up to `bin` are those with values up to `value`.
struct BinThreshold {
  double value;
  std::size_t bin;
};

// Returns the threshold of a split between `bin`, the last bin with rows that go left, and `next`,
// the first one with rows that go right (0: none). Bins between them have no rows of the node. Of
// the gaps between neighbouring bins, the threshold is the middle of the gap that contains, or is
// nearest to, the middle between the largest value on the left and the smallest on the right.
inline BinThreshold threshold_behind(const KeptBins& bins, std::int32_t feature, std::size_t bin,
                                     std::size_t next) {
  const double *const low = bins.low_of(feature), *const high = bins.high_of(feature);
  const auto n_bins = static_cast<std::size_t>(bins.n_bins[static_cast<std::size_t>(feature)]);
  const double value = next > bin ? between(high[bin], low[next]) : high[bin];
  while (bin + 1 < n_bins && low[bin + 1] <= value) ++bin;
  return {threshold_between(high[bin], bin + 1 < n_bins ? low[bin + 1] : kInfinity), bin};
}

// Returns the categories of a feature that go to the other child than unseen ones, ascending.
// goes_left: by bin.
inline std::vector<std::int32_t> categories_against_unseen(
    const KeptBins& bins, std::int32_t feature, std::span<const std::uint8_t, 256> goes_left,
    bool unseen_left) {
  const auto start = [&](std::int64_t j) {
    return static_cast<std::size_t>(bins.category_start[static_cast<std::size_t>(j)]);
  };
  std::vector<std::int32_t> category_codes;
  for (std::size_t i = start(feature); i < start(std::int64_t{feature} + 1); ++i)
    if ((goes_left[bins.category_bin[i]] != 0) != unseen_left)
      category_codes.push_back(bins.category_codes[i]);
  return category_codes;
}

}  // namespace certree
