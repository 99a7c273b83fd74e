// Binning: the values of features as bin numbers of one byte.
#pragma once

#include <variant>

#include "sparse_rows.hpp"

namespace certree {

inline constexpr std::int32_t kMostBins = 255;
inline constexpr std::uint8_t kMissingBin = 255;  // the number that stands for missing values

// The values of a feature, `stride` entries apart.
template <class Real>
struct Strided {
  const Real* data;
  std::int64_t stride;
};

// The values of a feature as float64 or float32. Bins do not depend on which of the two it is.
using FeatureValues = std::variant<Strided<double>, Strided<float>>;

// The bins of p features. Category codes number the categories of a categorical feature.
struct BinColumns {
  std::vector<std::int32_t> n_bins;     // (p,)
  std::vector<std::int64_t> bin_start;  // (p + 1,) where the bins of each feature start
  std::vector<double> low;              // smallest value in each bin of a numeric feature
  std::vector<double> high;             // largest value in each bin of a numeric feature
  std::vector<std::int64_t>
      category_start;  // (p + 1,) where the category_codes of each feature start
  std::vector<std::int32_t>
      category_codes;                      // category_codes that occur, ascending within a feature
  std::vector<std::uint8_t> category_bin;  // bin of each category
};

// How numeric features are binned.
struct NumberBins {
  std::size_t most = kMostBins;  // largest number of bins
  bool fine_ends = false;        // whether bins at both ends hold fewer values, see bin_features()
};

// Bins features.
//
// Bins of a numeric feature ascend with the values, and none is empty. If there are at most
// wanted.most distinct values, each has a bin. Otherwise edges are placed between neighbouring
// values of the sampled rows, so that bins hold about equally many of these rows. Of a categorical
// feature at most 254 categories have a bin each. If there are more, the 254 most frequent have (on
// ties the smaller numbers), and all others share the last bin.
//
// With fine_ends, bins hold the fewer values the nearer they are to the smallest or the largest
// one. A split by an uninformative feature does the least harm if it separates only a few rows, and
// leaves the others to a better feature.
//
//   features: (p,) of n rows each
//   sample:   rows whose values decide on the edges
//   category: (p,) whether a feature is categorical; empty: none is
//   codes:    (p, n) result: bin of each value, or kMissingBin
BinColumns bin_features(std::span<const FeatureValues> features,
                        std::span<const std::int32_t> sample,
                        std::span<const std::uint8_t> category, const NumberBins& wanted,
                        int n_threads, Table<std::uint8_t> codes);

// The bins of a sparse table, as in StoredCodes: of the values that are in another bin than 0.
struct StoredColumns {
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> row;
  std::vector<std::uint8_t> code, zero;
};

// Bins sparse numeric features in the same way. columns: a sparse table (p, n) with a row for each
// feature; values that are not stored are 0.
template <class Real>
BinColumns bin_stored(const SparseRows<Real>& columns, std::span<const std::int32_t> sample,
                      const NumberBins& wanted, int n_threads, StoredColumns& stored);

// -- the same in steps, for tables in blocks

// Merges the distinct values of a block, without NaN, into values, ascending. Returns false if
// there are more than 255.
bool distinct_values(std::span<const double> column, std::vector<double>& values);

// Returns the edges of bins by the values of the sampled rows.
std::vector<double> edges_of(std::vector<double> values, const NumberBins& wanted);

// Bins a block by at most 254 edges. low, high: (n_bins,) smallest and largest value of the block
// in each bin; infinite if it is empty.
void encode_numbers(std::span<const double> column, std::span<const double> edges,
                    std::span<std::uint8_t> codes, std::span<double> low, std::span<double> high);

// Assigns bins to categories by their numbers of rows. category_codes: ascending. Returns the
// number of bins.
std::size_t bin_categories(std::span<const std::int32_t> category_codes,
                           std::span<const std::int64_t> n_rows, std::vector<std::uint8_t>& bins);

}  // namespace certree
