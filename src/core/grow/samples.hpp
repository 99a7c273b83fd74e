// Trees on samples of rows, each in bins that are told from its sample alone: no other row decides
// anything of a tree.
#pragma once

#include "grow/binned_growth.hpp"

namespace certree {

struct SampledRows {
  Table<const double> X;                   // (n, p)
  std::span<const std::uint8_t> category;  // (p,) whether a feature holds categories
  std::span<const double> weight;          // (n,) positive, made whole in each sample; or empty
  Table<const std::int32_t> samples;       // (n_trees, n_drawn) rows that grow each tree
  std::int64_t n_deciding;                 // first rows of a sample, which edges are told from
  std::span<const std::uint64_t> seeds;    // (n_trees,)
  std::span<const std::uint64_t> targets;  // (n,) words, as ColumnSums takes them
};

// Ends of bins are fine. The sample decides the order in which features are compared, and the
// numbers of the categories that are compared. response: of all rows.
BinnedTrees grow_samples(const SampledRows& rows, std::int64_t max_features_of_tree,
                         const BinnedGrowth& growth, const Classes& response);

}  // namespace certree
