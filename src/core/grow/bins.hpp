// Bins: the values of a feature as codes of one byte.
#pragma once

#include <variant>

#include "sparse_rows.hpp"

namespace certree {

inline constexpr std::int32_t kMostBins = 255;
inline constexpr std::uint8_t kMissingBin = 255;  // no bin has this code

// The values of a feature, `stride` numbers apart.
template <class Real>
struct Strided {
  const Real* data;
  std::int64_t stride;
};

// In whatever memory they came: what is kept of float is what is kept of the same numbers as
// double.
using FeatureValues = std::variant<Strided<double>, Strided<float>>;

// What is kept of the bins beside the codes. A value of a feature of categories is a level.
struct BinColumns {
  std::vector<std::int32_t> n_bins;       // (p,)
  std::vector<std::int64_t> bin_start;    // (p + 1,) where the bins of each feature start
  std::vector<double> low;                // smallest value in each bin of numbers
  std::vector<double> high;               // largest value in each bin of numbers
  std::vector<std::int64_t> level_start;  // (p + 1,) where the levels of each feature start
  std::vector<std::int32_t> levels;       // levels that occur, ascending within a feature
  std::vector<std::uint8_t> level_bin;    // bin of each level
};

// Of each feature of numbers.
struct NumberBins {
  std::size_t most = kMostBins;
  bool fine_ends = false;
};

// Every bin of numbers holds some value, and bins ascend with the values. No more distinct values
// than there may be bins have one each; of more, edges lie between neighbouring values of the
// sampled rows, so that bins hold about as many of these. At most 254 levels have a bin each; of
// more, those 254 that most rows have, of equally many the smaller ones, and all others share the
// last bin.
//
// Where ends are fine, bins hold the fewer values the nearer they are to the smallest or the
// largest one. A cut by a feature that tells nothing is best where it takes a few rows away, and
// leaves the others to a better feature.
//
// features: (p,) of n rows each. sample: rows whose values decide the edges. category: (p,) or
// empty. codes: (p, n).
BinColumns bin_features(std::span<const FeatureValues> features,
                        std::span<const std::int32_t> sample,
                        std::span<const std::uint8_t> category, const NumberBins& wanted,
                        int n_threads, Table<std::uint8_t> codes);

// Codes of values that lie in other bins than 0 does, as StoredCodes says.
struct StoredColumns {
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> row;
  std::vector<std::uint8_t> code, zero;
};

// The same bins of features of numbers whose values are 0 where none is stored. columns: those of
// each feature, by row.
template <class Real>
BinColumns bin_stored(const SparseRows<Real>& columns, std::span<const std::int32_t> sample,
                      const NumberBins& wanted, int n_threads, StoredColumns& stored);
// -- the same step by step, where rows lie in parts

// The distinct values of a part, ascending, if there are at most 255; NaN is none.
bool distinct_values(std::span<const double> column, std::vector<double>& values);

// The edges of bins by the values of the sampled rows.
std::vector<double> edges_of(std::vector<double> values, const NumberBins& wanted);

// Codes of a part by at most 254 edges; and the smallest and largest value in each bin, infinite
// where it has none: (n_bins,).
void encode_numbers(std::span<const double> column, std::span<const double> edges,
                    std::span<std::uint8_t> codes, std::span<double> low, std::span<double> high);

// The bin of each of ascending levels by how many rows have it. Returns the number of bins.
std::size_t bins_of_levels(std::span<const std::int32_t> levels,
                           std::span<const std::int64_t> n_rows, std::vector<std::uint8_t>& bins);

}  // namespace certree
