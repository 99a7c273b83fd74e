#include "grow/coarser.hpp"

#include "grow/random.hpp"
#include "numbers.hpp"

namespace certree {
namespace {

// Features of at most so many bins keep them: coarser bins would cost more accuracy than trees that
// differ gain.
constexpr std::int64_t kFewBins = 32;

// The coarser bin of each bin.
using BinMap = std::array<std::uint8_t, 256>;

BinMap same_bins() {
  BinMap same;
  std::iota(same.begin(), same.end(), std::uint8_t{0});
  return same;
}

// Writes to drawn[b] a uniform integer below the number of edges behind bin b; 0 for the last bin.
CERTREE_SIMD_CLONES void draw_below_edges(std::uint64_t key, std::int32_t n_bins,
                                          std::int32_t* drawn) noexcept {
  for (std::int32_t b = 0; b < n_bins; ++b)
    drawn[b] =
        static_cast<std::int32_t>(unit_number(random_bits(key, static_cast<std::uint64_t>(b))) *
                                  static_cast<double>(n_bins - 1 - b));
}

// Draws n_edges of the edges between bins, all sets of which are equally likely, and returns the
// bins between these. An edge is kept if its number is below that of the edges still to be kept.
BinMap draw_bins(std::int32_t n_bins, std::int64_t n_edges, std::uint64_t key) {
  std::array<std::int32_t, 256> drawn;
  draw_below_edges(key, n_bins, drawn.data());
  BinMap into;
  into.fill(kMissingBin);
  std::uint8_t bin = 0;
  for (std::size_t b = 0; b < static_cast<std::size_t>(n_bins); ++b) {
    into[b] = bin;
    if (drawn[b] >= n_edges) continue;
    ++bin;
    --n_edges;
  }
  return into;
}

// Writes the numbers of bins and their ranges to `bins`, and returns the coarser bins of each of
// the features.
std::vector<BinMap> coarsen_bins(const KeptBins& table, std::span<const std::int32_t> features,
                                 std::int64_t n_edges, std::uint64_t key,
                                 const FeatureOrder& feature_order, CoarserBins& bins) {
  std::vector<BinMap> joined;
  joined.reserve(features.size());
  bins.n_bins.assign(table.n_bins.begin(), table.n_bins.end());
  bins.low.resize(table.low.size());
  bins.high.resize(table.low.size());
  for (const std::int32_t feature : features) {
    const auto j = static_cast<std::size_t>(feature);
    const auto n_bins = static_cast<std::size_t>(table.n_bins[j]);
    double *const low = bins.low.data() + table.start(j), *const high =
                                                              bins.high.data() + table.start(j);
    const bool stays = table.category[j] != 0 || table.n_bins[j] <= std::max(kFewBins, n_edges + 1);
    const auto place = static_cast<std::uint64_t>(feature_order.of(feature));
    const BinMap& into = joined.emplace_back(
        stays ? same_bins() : draw_bins(table.n_bins[j], n_edges, key_of(key, place)));
    if (!stays) bins.n_bins[j] = static_cast<std::int32_t>(n_edges + 1);
    for (std::size_t b = n_bins; b-- > 0;) low[into[b]] = table.low_of(j)[b];
    for (std::size_t b = 0; b < n_bins; ++b) high[into[b]] = table.high_of(j)[b];
    count_steps(n_bins);
  }
  return joined;
}

}  // namespace

void coarsen(const BinnedTable& table, std::span<const std::int32_t> features, std::int64_t n_edges,
             std::uint64_t key, const FeatureOrder& feature_order, CoarserBins& bins,
             Table<std::uint8_t> coarser) {
  const std::vector<BinMap> joined =
      coarsen_bins(table, features, n_edges, key, feature_order, bins);
  if (table.is_sparse()) {
    bins.into.resize(table.low.size());
    bins.zero.assign(table.stored.zero.begin(), table.stored.zero.end());
  }
  for (std::size_t at = 0; at < features.size(); ++at) {
    const auto j = static_cast<std::size_t>(features[at]);
    const BinMap& into = joined[at];
    if (table.is_sparse()) {
      std::copy_n(into.begin(), table.n_bins[j], bins.into.data() + table.start(j));
      bins.zero[j] = into[bins.zero[j]];
      continue;
    }
    const std::uint8_t* const code = table.codes.of_features.row(j);
    std::uint8_t* to = coarser.row(j);
    if (bins.n_bins[j] == table.n_bins[j]) {
      std::copy_n(code, table.codes.of_features.width, to);
      continue;
    }
    for (const auto part : chunks(code, code + table.codes.of_features.width))
      for (const std::uint8_t bin : part) *to++ = into[bin];
  }
}

}  // namespace certree
