#include "grow/gaps.hpp"

#include "count_below.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// Number of rows that are read for one feature after another: few enough that their cache lines
// stay in the cache, and enough that loading the thresholds of each feature costs little.
constexpr std::int64_t kBlock = 4096;

// Gaps of the thresholds of one feature, from the values of the rows that have been added.
class FeatureGaps {
 public:
  FeatureGaps(std::int32_t feature, std::span<const double> threshold)
      : feature_(feature),
        threshold_(threshold.begin(), threshold.end()),
        ranges_(threshold.size() + 1) {
    pad_thresholds(threshold_);
  }

  // Adds the values of the rows begin, ..., end - 1.
  template <class Real>
  void add(Table<const Real> rows, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kMost = kValuesAtOnce;
    for (; begin < end; begin += kMost) add_some(rows, begin, std::min(end - begin, kMost));
  }

  // Writes the gap of each threshold.
  void write(std::span<double> low, std::span<double> high) const {
    double most = -kInfinity, least = kInfinity;
    for (std::size_t t = 0; t < low.size(); ++t) low[t] = most = std::max(most, ranges_[t].most);
    for (std::size_t t = high.size(); t-- > 0;)
      high[t] = least = std::min(least, ranges_[t + 1].least);
  }

 private:
  struct Range {
    double least = kInfinity, most = -kInfinity;
  };

  template <class Real>
  void add_some(Table<const Real> rows, std::int64_t first, std::int64_t n) {
    std::array<double, kValuesAtOnce> value{};
    for (std::int64_t i = 0; i < n; ++i)  // + 0.0 turns -0.0 into 0.0
      value[static_cast<std::size_t>(i)] = static_cast<double>(rows.row(first + i)[feature_]) + 0.0;
    std::array<std::uint64_t, kValuesAtOnce> below;
    count_below(threshold_.data(), threshold_.size(), value.data(), below.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      // Comparisons with NaN are false, so that it changes no range.
      Range& range = ranges_[below[i]];
      range.least = value[i] < range.least ? value[i] : range.least;
      range.most = value[i] > range.most ? value[i] : range.most;
    }
  }

  std::int32_t feature_;
  std::vector<double> threshold_;
  // Range t: the smallest and the largest value above threshold t - 1 and not above threshold t.
  // The first range has no lower limit, the last one no upper limit.
  std::vector<Range> ranges_;
};

}  // namespace

template <class Real>
void find_gaps(Table<const Real> rows, const FeatureThresholds& thresholds, int n_threads,
               std::span<double> low, std::span<double> high) {
  const std::int64_t n_features = std::ssize(thresholds.features);
  const std::int64_t n_parts =
      std::max<std::int64_t>(1, std::min<std::int64_t>(n_threads, n_features));
  parallel_for(n_parts, n_threads, [&](std::int64_t part) {
    const auto begin = static_cast<std::size_t>(n_features * part / n_parts);
    const auto end = static_cast<std::size_t>(n_features * (part + 1) / n_parts);
    const auto range = [&](std::size_t i) {
      return std::pair(static_cast<std::size_t>(thresholds.start[i]),
                       static_cast<std::size_t>(thresholds.start[i + 1] - thresholds.start[i]));
    };
    std::vector<FeatureGaps> gaps;
    for (std::size_t i = begin; i < end; ++i) {
      const auto [first, n] = range(i);
      gaps.emplace_back(thresholds.features[i], thresholds.value.subspan(first, n));
    }
    for (std::int64_t row = 0; row < rows.n_rows; row += kBlock)
      for (FeatureGaps& of : gaps) {
        count_steps(kBlock);
        of.add(rows, row, std::min(row + kBlock, rows.n_rows));
      }
    for (std::size_t i = begin; i < end; ++i) {
      const auto [first, n] = range(i);
      gaps[i - begin].write(low.subspan(first, n), high.subspan(first, n));
    }
  });
}

template void find_gaps(Table<const float>, const FeatureThresholds&, int, std::span<double>,
                        std::span<double>);
template void find_gaps(Table<const double>, const FeatureThresholds&, int, std::span<double>,
                        std::span<double>);

}  // namespace certree
