#include "grow/coarser.hpp"

#include <array>

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

CoarserBins coarsen(const BinnedTable& table, std::int64_t n_edges, std::uint64_t key,
                    Table<std::uint8_t> coarser) {
  const std::span<const std::int32_t> n_bins = table.n_bins;
  const Table<const double>&low = table.low, &high = table.high;
  CoarserBins bins{{n_bins.begin(), n_bins.end()},
                   {low.values().begin(), low.values().end()},
                   {high.values().begin(), high.values().end()}};
  for (std::size_t j = 0; j < n_bins.size(); ++j) {
    const std::uint8_t* code = table.codes.row(j);
    std::uint8_t* to = coarser.row(j);
    const bool stays = table.category[j] != 0 || n_bins[j] <= std::max(kFewBins, n_edges + 1);
    if (stays) {
      std::copy_n(code, table.codes.width, to);
      continue;
    }
    const auto into = joined_bins(n_bins[j], n_edges, Random(key_of(key, j)));
    for (const auto part : stretches(code, code + table.codes.width))
      for (const std::uint8_t bin : part) *to++ = into[bin];
    for (std::size_t b = static_cast<std::size_t>(n_bins[j]); b-- > 0;)
      bins.low[j * kMost + into[b]] = low.row(j)[b];
    for (std::size_t b = 0; b < static_cast<std::size_t>(n_bins[j]); ++b)
      bins.high[j * kMost + into[b]] = high.row(j)[b];
    bins.n_bins[j] = static_cast<std::int32_t>(n_edges + 1);
  }
  return bins;
}

}  // namespace certree
