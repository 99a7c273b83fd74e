// Bins as some tree may tell them apart.
#pragma once

#include <array>

#include "grow/binned.hpp"
#include "grow/feature_order.hpp"

namespace certree {

struct CoarserBins {
  std::vector<std::int32_t> n_bins;  // (p,)
  std::vector<double> low, high;     // those of a feature start where they did before
  // Where codes are stored: what each bin has become, and the codes of 0, (p,).
  std::vector<std::uint8_t> into, zero;
};

// Joins neighbouring bins of numbers but at n_edges edges, drawn by a key. Features of categories
// and those with few bins stay as they are. Other features keep their numbers of bins, and nothing
// else is written of them. coarser: (p, n) codes; none where they are stored. feature_order: what
// is drawn for a feature depends on its place there.
void coarsen(const BinnedTable& table, std::span<const std::int32_t> features, std::int64_t n_edges,
             std::uint64_t key, const FeatureOrder& feature_order, CoarserBins& bins,
             Table<std::uint8_t> coarser);

}  // namespace certree
