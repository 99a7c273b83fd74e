#include "grow/samples.hpp"

#include "parallel.hpp"
#include "rows/column_sums.hpp"

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

// The categories of each feature by the numbers that they have in a sample.
using CategoryCodes = std::vector<std::vector<std::int32_t>>;

// A sample in its bins.
struct BinnedSample {
  FeatureOrder feature_order;
  CategoryCodes category_codes;
  BinColumns kept;
  Buffer<std::uint8_t> codes;  // (n, p)
};

constexpr std::int32_t kMostCategories = 1 << 24;

// The code that a value is of a category; -1: it is none, as bins say if it is no missing value.
std::int32_t code_of(double value) {
  const bool is_code = value >= 0.0 && value < kMostCategories && value == std::floor(value);
  return is_code ? static_cast<std::int32_t>(value) : -1;
}

// How many categories the features of rows may have, and one more; 0 of numbers.
std::vector<std::int32_t> number_categories_by_rows(Table<const double> X,
                                                    std::span<const std::uint8_t> category) {
  std::vector<std::int32_t> n_categories(category.size(), 0);
  for (std::size_t j = 0; j < n_categories.size(); ++j) {
    if (!category[j]) continue;
    std::int32_t most = -1;
    for (const std::size_t i : indices(X.n_rows)) most = std::max(most, code_of(X.row(i)[j]));
    n_categories[j] = most + 2;
  }
  return n_categories;
}

// Gives the categories of rows other numbers, as sums tell, and says which these stand for.
CategoryCodes number_categories(const ColumnSums& sums, const Table<double>& X) {
  CategoryCodes category_codes(static_cast<std::size_t>(X.width));
  for (std::size_t j = 0; j < category_codes.size(); ++j) {
    const auto begin = static_cast<std::size_t>(sums.category_start[j]);
    const auto end = static_cast<std::size_t>(sums.category_start[j + 1]);
    if (begin == end) continue;
    const auto of_column = [&](const std::vector<std::uint64_t>& all) {
      return std::span(all).subspan(begin, end - begin - 1);
    };
    const auto number =
        certree::number_categories_by_rows(of_column(sums.n_rows), of_column(sums.words));
    category_codes[j].resize(number.size());
    for (std::size_t code = 0; code < number.size(); ++code)
      category_codes[j][static_cast<std::size_t>(number[code])] = static_cast<std::int32_t>(code);
    for (const std::size_t i : indices(X.n_rows)) {
      double& value = X.row(i)[j];
      const std::int32_t code = code_of(value);
      if (code >= 0) value = number[static_cast<std::size_t>(code)];
    }
  }
  return category_codes;
}

// Names categories in trees as they were called.
void name_categories(const CategoryCodes& category_codes, TreeColumns& nodes) {
  if (nodes.category_start.empty()) return;
  for (const std::size_t v : indices(nodes.left.size())) {
    const auto begin = nodes.categories.begin() + nodes.category_start[v];
    const auto end = nodes.categories.begin() + nodes.category_start[v + 1];
    if (begin == end) continue;
    const auto& own = category_codes[static_cast<std::size_t>(nodes.feature[v])];
    std::transform(begin, end, begin,
                   [&](std::int32_t number) { return own[static_cast<std::size_t>(number)]; });
    std::sort(begin, end);
  }
}

BinnedSample binned(const SampledRows& all, Rows rows) {
  const std::int64_t n = std::ssize(rows), p = all.X.width;
  const auto values = make_buffer<double>(n, p);
  const auto by_feature = make_buffer<std::uint8_t>(p, n);
  const Table<double> X{values.get(), n, p};
  std::vector<FeatureValues> features;
  for (std::int64_t j = 0; j < p; ++j) features.push_back(Strided<double>{values.get() + j, p});
  for (const std::size_t i : indices(n, p)) std::copy_n(all.X.row(rows[i]), p, X.row(i));
  const ColumnSums sums =
      column_sums(features, number_categories_by_rows({values.get(), n, p}, all.category),
                  values_of(all.targets, rows), 1);
  CategoryCodes category_codes = number_categories(sums, X);
  std::vector<std::int32_t> deciding(static_cast<std::size_t>(std::min(all.n_deciding, n)));
  std::iota(deciding.begin(), deciding.end(), 0);
  BinnedSample sample{FeatureOrder(order_of_columns(sums), static_cast<std::size_t>(p)),
                      std::move(category_codes),
                      bin_features(features, deciding, all.category, {.fine_ends = true}, 1,
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
  const KeptBins bins{kept.n_bins,         kept.bin_start,   kept.low,
                      kept.high,           all.category,     kept.category_start,
                      kept.category_codes, kept.category_bin};
  const Bags alone{{Sampling::all, n, seed}, 0, 1, max_features_of_tree};
  BinnedGrowth own = growth;
  own.feature_order = sample.feature_order;
  BinnedTrees grown = grow_bags({bins, {sample.codes.get(), n, p}, {}, weight}, alone, own,
                                {y, response.n_classes, response.criterion});
  name_categories(sample.category_codes, grown.nodes);
  return grown;
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
