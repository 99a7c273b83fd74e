#include "grow/samples.hpp"

#include "parallel.hpp"

namespace certree {
namespace {

using Rows = std::span<const std::int32_t>;

template <class T>
std::vector<T> values_of(std::span<const T> column, Rows rows) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const auto part : chunks(rows))
    for (const std::int32_t i : part) values.push_back(column[static_cast<std::size_t>(i)]);
  return values;
}

// A sample in its bins.
struct BinnedSample {
  BinColumns kept;
  Buffer<std::uint8_t> codes;  // (n, p)
};

BinnedSample binned(const SampledRows& all, Rows rows) {
  const std::int64_t n = std::ssize(rows), p = all.X.width;
  const auto values = make_buffer<double>(n, p);
  const auto by_feature = make_buffer<std::uint8_t>(p, n);
  const Table<double> X{values.get(), n, p};
  std::vector<FeatureValues> features;
  for (std::int64_t j = 0; j < p; ++j) features.push_back(Strided<double>{values.get() + j, p});
  for (const std::size_t i : indices(n, p)) std::copy_n(all.X.row(rows[i]), p, X.row(i));
  std::vector<std::int32_t> deciding(static_cast<std::size_t>(std::min(all.n_deciding, n)));
  std::iota(deciding.begin(), deciding.end(), 0);
  BinnedSample sample{bin_features(features, deciding, all.category, {.fine_ends = true}, 1,
                                   {by_feature.get(), p, n}),
                      make_buffer<std::uint8_t>(n, p)};
  std::uint8_t* code = sample.codes.get();
  for (const std::size_t i : indices(n, p))
    for (std::int64_t j = 0; j < p; ++j) *code++ = by_feature[static_cast<std::size_t>(j * n) + i];
  return sample;
}

BinnedTrees grow_sample(const SampledRows& all, Rows rows, std::uint64_t seed,
                        std::int64_t max_features_of_tree, const BinnedGrowth& growth,
                        const Classes& response) {
  const BinnedSample sample = binned(all, rows);
  const BinColumns& kept = sample.kept;
  const std::int64_t n = std::ssize(rows), p = all.X.width;
  const std::vector<std::int32_t> y = values_of(response.y, rows);
  std::vector<double> weight;
  if (!all.weight.empty()) {
    weight = values_of(all.weight, rows);
    whole_weights(weight, unit_of_weights(weight), weight);
  }
  const KeptBins bins{kept.n_bins,  kept.bin_start,   kept.low,    kept.high,
                      all.category, kept.level_start, kept.levels, kept.level_bin};
  const Bags alone{{Sampling::all, n, seed}, 0, 1, max_features_of_tree};
  return grow_bags({bins, {sample.codes.get(), n, p}, {}, weight}, alone, growth,
                   {y, response.n_classes, response.criterion});
}

}  // namespace

BinnedTrees grow_samples(const SampledRows& rows, std::int64_t max_features_of_tree,
                         const BinnedGrowth& growth, const Classes& response) {
  std::vector<BinnedTrees> grown(rows.seeds.size());
  parallel_for(std::ssize(grown), growth.n_threads, [&](std::int64_t t) {
    const auto number = static_cast<std::size_t>(t);
    const Rows own(rows.samples.row(t), static_cast<std::size_t>(rows.samples.width));
    grown[number] =
        grow_sample(rows, own, rows.seeds[number], max_features_of_tree, growth, response);
  });
  return joined(std::move(grown));
}

}  // namespace certree
