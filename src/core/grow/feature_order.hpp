// The order in which growers compare and draw features, whatever their places in a table.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace certree {

struct FeatureOrder {
  std::vector<std::int32_t> features;  // (p,) one after the other
  std::vector<std::int32_t> rank;      // (p,) place of each feature among them

  FeatureOrder() = default;
  // given: every feature once; empty: p features as they stand.
  FeatureOrder(std::span<const std::int32_t> given, std::size_t p)
      : features(given.begin(), given.end()), rank(p) {
    features.resize(p);
    if (given.empty()) std::iota(features.begin(), features.end(), 0);
    for (std::size_t i = 0; i < p; ++i)
      rank[static_cast<std::size_t>(features[i])] = static_cast<std::int32_t>(i);
  }

  std::int32_t of(std::int64_t feature) const { return rank[static_cast<std::size_t>(feature)]; }
  bool is_before(std::int32_t one, std::int32_t other) const { return of(one) < of(other); }
};

}  // namespace certree
