#include "grow/coarser.hpp"

#include "grow/random.hpp"

namespace certree {
namespace {

constexpr auto kMost = static_cast<std::size_t>(kMostBins);

// Features of so few bins lose more by coarser ones than trees that differ are worth.
constexpr std::int64_t kFewBins = 32;

// The bin that each of ascending bins becomes a part of: behind each edge that is drawn, out of all
// sets of so many edges with the same probability, another one starts.
std::array<std::uint8_t, 256> joined_bins(std::int64_t n_bins, std::int64_t n_edges,
                                          Random random) {
  std::array<std::uint8_t, 256> into;
  into.fill(kMissingBin);
  std::uint8_t bin = 0;
  for (std::int64_t b = 0; b < n_bins; ++b) {
    into[static_cast<std::size_t>(b)] = bin;
    const std::int64_t n_left = n_bins - 1 - b;  // edges behind this bin and later ones
    if (n_left == 0 || random.below(n_left) >= n_edges) continue;
    ++bin;
    --n_edges;
  }
  return into;
}

}  // namespace

std::vector<std::array<std::uint8_t, 256>> join_bins(const KeptBins& table,
                                                     std::span<const std::int32_t> features,
                                                     std::int64_t n_edges, std::uint64_t key,
                                                     CoarserBins& bins) {
  std::vector<std::array<std::uint8_t, 256>> joined(features.size());
  std::size_t at = 0;
  bins.n_bins.assign(table.n_bins.begin(), table.n_bins.end());
  bins.low.resize(table.n_bins.size() * kMost);
  bins.high.resize(table.n_bins.size() * kMost);
  for (const std::int32_t feature : features) {
    const auto j = static_cast<std::size_t>(feature);
    auto& into = joined[at++];
    double *const low = bins.low.data() + j * kMost, *const high = bins.high.data() + j * kMost;
    const std::int32_t n_bins = table.n_bins[j];
    if (table.category[j] != 0 || n_bins <= std::max(kFewBins, n_edges + 1)) {
      std::copy_n(table.low.row(j), kMost, low);
      std::copy_n(table.high.row(j), kMost, high);
      std::iota(into.begin(), into.end(), std::uint8_t{0});
      continue;
    }
    into = joined_bins(n_bins, n_edges, Random(key_of(key, j)));
    for (std::size_t b = static_cast<std::size_t>(n_bins); b-- > 0;)
      low[into[b]] = table.low.row(j)[b];
    for (std::size_t b = 0; b < static_cast<std::size_t>(n_bins); ++b)
      high[into[b]] = table.high.row(j)[b];
    bins.n_bins[j] = static_cast<std::int32_t>(n_edges + 1);
  }
  return joined;
}

void coarsen(const BinnedTable& table, std::span<const std::int32_t> features, std::int64_t n_edges,
             std::uint64_t key, CoarserBins& bins, Table<std::uint8_t> coarser) {
  const auto joined = join_bins(table, features, n_edges, key, bins);
  for (std::size_t at = 0; at < features.size(); ++at) {
    const auto j = static_cast<std::size_t>(features[at]);
    const std::uint8_t* code = table.codes.row(j);
    std::uint8_t* to = coarser.row(j);
    if (bins.n_bins[j] == table.n_bins[j]) {
      std::copy_n(code, table.codes.width, to);
      continue;
    }
    for (const auto part : stretches(code, code + table.codes.width))
      for (const std::uint8_t bin : part) *to++ = joined[at][bin];
  }
}

}  // namespace certree
