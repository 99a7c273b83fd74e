#include "grow/bins.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include "count_below.hpp"
#include "grow/growth.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// The bins of one feature.
struct FeatureBins {
  std::vector<double> low, high;
  std::vector<std::int32_t> category_codes;
  std::vector<std::uint8_t> category_bin;
  std::size_t n_bins = 0;
};

constexpr auto kMost = static_cast<std::size_t>(kMostBins);

// Returns the values of a feature. -0 becomes 0, so that bins do not depend on the order of rows.
Buffer<double> column_of(const FeatureValues& values, std::int64_t n) {
  auto column = make_buffer<double>(n);
  const auto copy = [&](const auto& from) {
    for (const std::size_t i : indices(n))
      column[i] = static_cast<double>(from.data[static_cast<std::int64_t>(i) * from.stride]) + 0.0;
  };
  std::visit(copy, values);
  return column;
}

// Merges the distinct values of a column, without NaN, into values, ascending. Returns false if
// there are more than `most`.
bool find_distinct(std::span<const double> column, std::size_t most, std::vector<double>& values) {
  for (const auto chunk : chunks(column))
    for (const double x : chunk) {
      if (std::isnan(x)) continue;
      const auto place = std::ranges::lower_bound(values, x);
      if (place != values.end() && *place == x) continue;
      if (values.size() == most) return false;
      values.insert(place, x);
    }
  return true;
}

// A value and how often it occurs.
using Run = std::pair<double, std::size_t>;
// Returns the runs of equal values; values are ascending.
std::vector<Run> runs_of(const std::vector<double>& values) {
  std::vector<Run> runs;
  for (const auto chunk : chunks(std::span(values)))
    for (const double x : chunk) {
      if (runs.empty() || runs.back().first != x) runs.emplace_back(x, 0);
      ++runs.back().second;
    }
  return runs;
}

// Returns how many values a bin holds that begins after n_below of n values: at most `most`, and at
// most kEnds times the number of values between the bin and the nearer end.
constexpr double kEnds = 0.2;  // at the cost of a quarter of the bins in the middle
std::size_t fine_size(std::size_t n_below, std::size_t n, std::size_t most) {
  const double nearer = std::min(kEnds * static_cast<double>(n_below),
                                 kEnds / (1.0 + kEnds) * static_cast<double>(n - n_below));
  return std::clamp(static_cast<std::size_t>(nearer), std::size_t{1}, most);
}

// Returns the smallest bound `most` of fine_size() with which n_bins bins hold all values after the
// first n_below of n. The search starts around the bound found before.
std::size_t fine_bound(std::size_t n_below, std::size_t n, std::size_t n_bins, std::size_t before) {
  const auto suffices = [&](std::size_t most) {
    // At this distance from both ends (6 = 1 / kEnds + 1) all bins hold `most` values: these bins
    // are counted at once.
    const std::size_t far = 6 * (most + 1);
    std::size_t at = n_below, left = n_bins;
    while (left > 0 && at < n) {
      const bool is_far = at >= far && at + far <= n;
      const std::size_t now = is_far ? std::min(left, (n - at - far) / most + 1) : 1;
      at += now * fine_size(at, n, most);
      left -= now;
    }
    return at >= n;
  };
  std::size_t low = 1, high = std::max<std::size_t>(n - n_below, 1);
  const auto narrow = [&](std::size_t most) { suffices(most) ? high = most : low = most + 1; };
  for (std::size_t most = before - 1; most <= before + 1; ++most)
    if (low <= most && most < high) narrow(most);
  while (low < high) narrow(low + (high - low) / 2);
  return low;
}

// Decides how many values the next bin holds: about values_ / parts_.
class BinSizes {
 public:
  BinSizes(std::size_t n, const NumberBins& wanted) : n_(n), fine_ends_(wanted.fine_ends) {
    open(n, wanted.most, 0);
  }

  // Begins a bin, when n_left values and n_bins bins are left, after a bin of n_before values.
  void open(std::size_t n_left, std::size_t n_bins, std::size_t n_before) {
    values_ = n_left;
    parts_ = n_bins;
    if (!fine_ends_) return;
    // If the bin before had the size that was wanted, the bound stays the same.
    if (n_before != wanted_) most_ = fine_bound(n_ - n_left, n_, n_bins, most_);
    values_ = wanted_ = fine_size(n_ - n_left, n_, most_);
    parts_ = 1;
  }
  // Returns whether a bin of n values is nearer to its size without the next n_next equal values.
  bool is_full(std::size_t n, std::size_t n_next) const {
    return (2 * n + n_next) * parts_ >= 2 * values_;
  }

 private:
  std::size_t n_;
  bool fine_ends_;
  std::size_t values_ = 0, parts_ = 1;
  std::size_t wanted_ = 1, most_ = 1;
};

// Returns the edges of bins of ascending values: with equally many in each, or fewer towards both
// ends. The size of a bin is a fraction of the values that are left when it begins, so that a
// frequent value takes no bins from others.
std::vector<double> balanced_bounds(std::span<const Run> runs, std::size_t n_values,
                                    const NumberBins& wanted) {
  std::vector<double> bounds;
  BinSizes sizes(n_values, wanted);
  std::size_t n_left = n_values, n = 0;  // values after the finished bins; in this bin
  for (const std::size_t i : indices(runs.size())) {
    n += runs[i].second;
    const std::size_t n_bins = wanted.most - bounds.size();
    if (i + 1 == runs.size() || n_bins == 1) break;
    if (!sizes.is_full(n, runs[i + 1].second)) continue;
    bounds.push_back(between(runs[i].first, runs[i + 1].first));
    n_left -= n;
    sizes.open(n_left, n_bins - 1, std::exchange(n, 0));
  }
  return bounds;
}

void sort_numbers(std::vector<double>& values) {
  std::erase_if(values, [](double x) { return std::isnan(x); });
  with_interrupt_checks(values.size(), std::less<>(),
                        [&](const auto& f) { std::ranges::sort(values, f); });
}

std::vector<double> sampled_values(std::span<const double> column,
                                   std::span<const std::int32_t> sample) {
  std::vector<double> values;
  for (const auto chunk : chunks(sample))
    for (const std::int32_t i : chunk) values.push_back(column[static_cast<std::size_t>(i)]);
  sort_numbers(values);
  return values;
}

// Writes the bin of each value, the number of edges below it, and the smallest and largest value of
// each bin.
void encode(std::span<const double> column, std::span<const double> bounds, std::uint8_t* code,
            FeatureBins& bins) {
  static_assert(kMissingCode == kMissingBin && kMost == kMissingBin);
  std::vector<double> padded(bounds.begin(), bounds.end());
  pad_thresholds(padded);
  // Missing values have an entry of their own after those of the bins.
  std::array<double, kMost + 1> low, high;
  low.fill(kInfinity);
  high.fill(-kInfinity);
  std::array<double, kValuesAtOnce> x;
  std::array<std::uint8_t, kValuesAtOnce> bin;
  x.fill(0.0);
  for (std::size_t first = 0; first < column.size(); first += kValuesAtOnce) {
    const std::size_t n = std::min(kValuesAtOnce, column.size() - first);
    count_steps(n);
    std::copy_n(column.data() + first, n, x.data());
    bin_values(padded.data(), padded.size(), x.data(), bin.data());
    for (std::size_t i = 0; i < n; ++i) {
      low[bin[i]] = std::min(low[bin[i]], x[i]);
      high[bin[i]] = std::max(high[bin[i]], x[i]);
    }
    code = std::copy_n(bin.data(), n, code);
  }
  bins.low.assign(low.begin(), low.begin() + std::ssize(bounds) + 1);
  bins.high.assign(high.begin(), high.begin() + std::ssize(bounds) + 1);
  bins.n_bins = bins.low.size();
}

FeatureBins bin_numbers(std::span<const double> column, std::span<const std::int32_t> sample,
                        const NumberBins& wanted, std::uint8_t* code) {
  FeatureBins bins;
  std::vector<double> values;
  if (!find_distinct(column, wanted.most, values)) {
    values = sampled_values(column, sample);
    encode(column, balanced_bounds(runs_of(values), values.size(), wanted), code, bins);
  } else if (values.empty()) {
    std::fill_n(code, column.size(), kMissingBin);
  } else {
    values.pop_back();
    encode(column, values, code, bins);
  }
  return bins;
}

// Returns a value of a categorical feature as a number of a category.
std::int32_t category_code(double x) {
  if (!(x >= 0.0 && x < 0x1p31 && x == std::floor(x)))
    throw std::invalid_argument("categories must be whole numbers 0, 1, ..., got " +
                                std::to_string(x));
  return static_cast<std::int32_t>(x);
}

// A category and its number of rows.
using CategoryCount = std::pair<std::int32_t, std::int64_t>;
// Returns the categories of a column with their numbers of rows, ascending.
std::vector<CategoryCount> count_categories(std::span<const double> column) {
  std::vector<std::int32_t> category_codes;
  for (const auto chunk : chunks(column))
    for (const double x : chunk)
      if (!std::isnan(x)) category_codes.push_back(category_code(x));
  with_interrupt_checks(category_codes.size(), std::less<>(),
                        [&](const auto& f) { std::ranges::sort(category_codes, f); });
  std::vector<CategoryCount> counts;
  for (const auto chunk : chunks(std::span(std::as_const(category_codes))))
    for (const std::int32_t category : chunk) {
      if (counts.empty() || counts.back().first != category) counts.emplace_back(category, 0);
      ++counts.back().second;
    }
  return counts;
}

// Returns, for each category, whether it has a bin of its own.
std::vector<std::uint8_t> find_frequent(const std::vector<CategoryCount>& counts) {
  std::vector<std::uint8_t> is_frequent(counts.size(), 1);
  if (counts.size() < kMost) return is_frequent;
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_before = [&](std::size_t a, std::size_t b) {
    return counts[a].second > counts[b].second || (counts[a].second == counts[b].second && a < b);
  };
  with_interrupt_checks(order.size(), is_before,
                        [&](const auto& f) { std::ranges::sort(order, f); });
  for (std::size_t i = kMost - 1; i < order.size(); ++i) is_frequent[order[i]] = 0;
  return is_frequent;
}

// Appends the bin of each category, and returns the number of bins.
std::size_t assign_category_bins(const std::vector<CategoryCount>& counts,
                                 std::vector<std::uint8_t>& category_bin) {
  const std::vector<std::uint8_t> is_frequent = find_frequent(counts);
  std::size_t n_bins = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    category_bin.push_back(static_cast<std::uint8_t>(is_frequent[i] ? n_bins++ : kMost - 1));
  return counts.size() >= kMost ? kMost : n_bins;
}

FeatureBins bin_categories(std::span<const double> column, std::uint8_t* code) {
  FeatureBins bins;
  const std::vector<CategoryCount> counts = count_categories(column);
  for (const CategoryCount& count : counts) bins.category_codes.push_back(count.first);
  bins.n_bins = assign_category_bins(counts, bins.category_bin);
  for (const auto chunk : chunks(column))
    for (const double x : chunk) {
      *code++ = std::isnan(x)
                    ? kMissingBin
                    : bins.category_bin[static_cast<std::size_t>(
                          std::ranges::lower_bound(bins.category_codes, category_code(x)) -
                          bins.category_codes.begin())];
    }
  return bins;
}

void append(const FeatureBins& bins, BinColumns& columns) {
  columns.n_bins.push_back(static_cast<std::int32_t>(bins.n_bins));
  columns.low.insert(columns.low.end(), bins.low.begin(), bins.low.end());
  columns.high.insert(columns.high.end(), bins.high.begin(), bins.high.end());
  const std::int64_t end = columns.bin_start.back() + static_cast<std::int64_t>(bins.n_bins);
  columns.low.resize(static_cast<std::size_t>(end));  // unused for categories
  columns.high.resize(static_cast<std::size_t>(end));
  columns.bin_start.push_back(end);
  columns.category_codes.insert(columns.category_codes.end(), bins.category_codes.begin(),
                                bins.category_codes.end());
  columns.category_bin.insert(columns.category_bin.end(), bins.category_bin.begin(),
                              bins.category_bin.end());
  columns.category_start.push_back(static_cast<std::int64_t>(columns.category_codes.size()));
}

// -- sparse columns

// The sampled rows, by which edges are placed.
struct EdgeSample {
  std::size_t n = 0;
  std::vector<std::uint8_t> marked;  // (n_rows,), or empty: all rows are sampled

  EdgeSample(std::span<const std::int32_t> sample, std::int64_t n_rows) : n(sample.size()) {
    if (std::ssize(sample) == n_rows) return;
    marked.resize(static_cast<std::size_t>(n_rows));
    for (const auto chunk : chunks(sample))
      for (const std::int32_t row : chunk) marked[static_cast<std::size_t>(row)] = 1;
  }
  bool contains(std::int32_t row) const {
    return marked.empty() || marked[static_cast<std::size_t>(row)] != 0;
  }
};

// Returns the edges of a sparse feature with more distinct values than bins. column, rows: stored
// values and their rows.
std::vector<double> bounds_of_stored(std::span<const double> column,
                                     std::span<const std::int32_t> rows, const EdgeSample& sampled,
                                     const NumberBins& wanted) {
  std::vector<double> values;
  for (const std::size_t i : indices(rows.size()))
    if (sampled.contains(rows[i])) values.push_back(column[i]);
  const std::size_t n_zeros = sampled.n - values.size();
  sort_numbers(values);
  auto runs = runs_of(values);
  if (n_zeros > 0) {
    auto place = std::ranges::lower_bound(runs, 0.0, {}, &Run::first);
    if (place == runs.end() || place->first != 0.0) place = runs.insert(place, {0.0, 0});
    place->second += n_zeros;
  }
  return balanced_bounds(runs, values.size() + n_zeros, wanted);
}

// Bins a sparse feature. has_zeros: whether some value is not stored; code: result, of the stored
// values. Returns the bin of 0.
std::uint8_t bin_stored_numbers(std::span<const double> column, std::span<const std::int32_t> rows,
                                bool has_zeros, const EdgeSample& sampled, const NumberBins& wanted,
                                std::uint8_t* code, FeatureBins& bins) {
  const double nothing = 0.0;
  const std::span zero(&nothing, has_zeros ? 1 : 0);
  std::vector<double> bounds;
  if (!find_distinct(column, wanted.most, bounds) || !find_distinct(zero, wanted.most, bounds)) {
    bounds = bounds_of_stored(column, rows, sampled, wanted);
  } else if (bounds.empty()) {
    std::fill_n(code, column.size(), kMissingBin);
    return 0;
  } else {
    bounds.pop_back();
  }
  encode(column, bounds, code, bins);
  const auto bin = static_cast<std::size_t>(std::ranges::lower_bound(bounds, 0.0) - bounds.begin());
  if (has_zeros) {
    bins.low[bin] = std::min(bins.low[bin], 0.0);
    bins.high[bin] = std::max(bins.high[bin], 0.0);
  }
  return static_cast<std::uint8_t>(bin);
}

BinColumns columns_of(const std::vector<FeatureBins>& bins) {
  BinColumns columns;
  columns.bin_start.push_back(0);
  columns.category_start.push_back(0);
  for (const FeatureBins& feature_bins : bins) append(feature_bins, columns);
  return columns;
}

}  // namespace

BinColumns bin_features(std::span<const FeatureValues> features,
                        std::span<const std::int32_t> sample,
                        std::span<const std::uint8_t> category, const NumberBins& wanted,
                        int n_threads, Table<std::uint8_t> codes) {
  std::vector<FeatureBins> bins(features.size());
  parallel_for(codes.n_rows, n_threads, [&](std::int64_t j) {
    const auto feature = static_cast<std::size_t>(j);
    const auto memory = column_of(features[feature], codes.width);
    const std::span<const double> column(memory.get(), static_cast<std::size_t>(codes.width));
    bins[feature] = !category.empty() && category[feature]
                        ? bin_categories(column, codes.row(j))
                        : bin_numbers(column, sample, wanted, codes.row(j));
  });
  return columns_of(bins);
}

template <class Real>
BinColumns bin_stored(const SparseRows<Real>& columns, std::span<const std::int32_t> sample,
                      const NumberBins& wanted, int n_threads, StoredColumns& stored) {
  const auto p = static_cast<std::size_t>(columns.n_rows());
  const EdgeSample sampled(sample, columns.width);
  std::vector<FeatureBins> bins(p);
  const auto codes = make_buffer<std::uint8_t>(columns.value.size());
  stored.zero.resize(p);
  parallel_for(columns.n_rows(), n_threads, [&](std::int64_t feature) {
    const auto j = static_cast<std::size_t>(feature);
    const auto begin = static_cast<std::size_t>(columns.start[j]);
    const std::size_t n = static_cast<std::size_t>(columns.start[j + 1]) - begin;
    const Strided<Real> values{columns.value.data() + begin, 1};
    const auto memory = column_of(values, static_cast<std::int64_t>(n));
    const bool has_zeros = std::cmp_less(n, columns.width);
    stored.zero[j] = bin_stored_numbers({memory.get(), n}, columns.feature.subspan(begin, n),
                                        has_zeros, sampled, wanted, codes.get() + begin, bins[j]);
  });
  stored.start.push_back(0);
  for (const std::size_t j : indices(p)) {
    for (auto k = static_cast<std::size_t>(columns.start[j]);
         std::cmp_less(k, columns.start[j + 1]); ++k) {
      if (codes[k] == stored.zero[j]) continue;
      stored.row.push_back(columns.feature[k]);
      stored.code.push_back(codes[k]);
    }
    count_steps(columns.start[j + 1] - columns.start[j]);
    stored.start.push_back(std::ssize(stored.row));
  }
  return columns_of(bins);
}

template BinColumns bin_stored(const SparseRows<float>&, std::span<const std::int32_t>,
                               const NumberBins&, int, StoredColumns&);
template BinColumns bin_stored(const SparseRows<double>&, std::span<const std::int32_t>,
                               const NumberBins&, int, StoredColumns&);

bool distinct_values(std::span<const double> column, std::vector<double>& values) {
  return find_distinct(column, kMost, values);
}

std::vector<double> edges_of(std::vector<double> values, const NumberBins& wanted) {
  sort_numbers(values);
  return balanced_bounds(runs_of(values), values.size(), wanted);
}

void encode_numbers(std::span<const double> column, std::span<const double> edges,
                    std::span<std::uint8_t> codes, std::span<double> low, std::span<double> high) {
  FeatureBins bins;
  encode(column, edges, codes.data(), bins);
  std::ranges::copy(bins.low, low.begin());
  std::ranges::copy(bins.high, high.begin());
}

std::size_t bin_categories(std::span<const std::int32_t> category_codes,
                           std::span<const std::int64_t> n_rows, std::vector<std::uint8_t>& bins) {
  std::vector<CategoryCount> counts;
  for (const std::size_t i : indices(category_codes.size()))
    counts.emplace_back(category_codes[i], n_rows[i]);
  return assign_category_bins(counts, bins);
}

}  // namespace certree
