#include "grow/gaps.hpp"

#include <array>

#include "numbers.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// Rows whose values of a feature are searched together: so many searches hide the time of memory
// accesses.
constexpr std::size_t kTogether = 64;
// Rows that are searched for one feature after another: they fit into the cache, and are so many
// that loading the thresholds of a feature costs little.
constexpr std::int64_t kBlock = 4096;

using Values = std::array<double, kTogether>;
using Places = std::array<std::int64_t, kTogether>;

// Counts, for each value, how many of the ascending thresholds are below it. Each step halves the
// thresholds that are left, for all values at a time.
CERTREE_SIMD_CLONES void count_below(const double* threshold, std::int64_t n_thresholds,
                                     const Values& value, Places& place) noexcept {
  place.fill(0);
  for (std::int64_t left = n_thresholds; left > 0;) {
    const std::int64_t step = (left + 1) / 2;
    for (std::size_t i = 0; i < kTogether; ++i)
      place[i] += threshold[place[i] + step - 1] < value[i] ? step : 0;
    left -= step;
  }
}

// Finds the gaps of the thresholds of one feature in blocks of rows.
class GapsOfFeature {
 public:
  GapsOfFeature(std::int32_t feature, std::span<const double> threshold)
      : feature_(feature), threshold_(threshold), ranges_(threshold.size() + 1) {}

  // Adds the rows from begin to end.
  template <class Real>
  void add(Table<const Real> rows, std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += std::int64_t{kTogether})
      add_some(rows, first, std::min(end - first, std::int64_t{kTogether}));
  }

  void write(std::span<double> low, std::span<double> high) const {
    double most = -kInfinity, least = kInfinity;
    for (std::size_t t = 0; t < threshold_.size(); ++t)
      low[t] = most = std::max(most, ranges_[t].most);
    for (std::size_t t = threshold_.size(); t-- > 0;)
      high[t] = least = std::min(least, ranges_[t + 1].least);
  }

 private:
  struct Range {
    double least = kInfinity, most = -kInfinity;
  };

  template <class Real>
  void add_some(Table<const Real> rows, std::int64_t first, std::int64_t n) {
    Values value;
    for (std::size_t i = 0; i < kTogether; ++i) {
      // Behind the last row its value is repeated, which changes nothing.
      const std::int64_t row = first + std::min(static_cast<std::int64_t>(i), n - 1);
      value[i] = static_cast<double>(rows.row(row)[feature_]) + 0.0;  // not -0.0
    }
    Places place;
    count_below(threshold_.data(), std::ssize(threshold_), value, place);
    for (std::size_t i = 0; i < kTogether; ++i) {
      // Comparisons with NaN are false.
      Range& range = ranges_[static_cast<std::size_t>(place[i])];
      range.least = value[i] < range.least ? value[i] : range.least;
      range.most = value[i] > range.most ? value[i] : range.most;
    }
  }

  std::int32_t feature_;
  std::span<const double> threshold_;
  // The values above each threshold, and up to the next one; the first are those below all.
  std::vector<Range> ranges_;
};

}  // namespace

template <class Real>
void find_gaps(Table<const Real> rows, const FeatureThresholds& thresholds, int n_threads,
               std::span<double> low, std::span<double> high) {
  const std::int64_t n_features = std::ssize(thresholds.features);
  const std::int64_t n_parts =
      std::max<std::int64_t>(std::min<std::int64_t>(n_threads, n_features), 1);
  parallel_for(n_parts, n_threads, [&](std::int64_t part) {
    const auto begin = static_cast<std::size_t>(n_features * part / n_parts);
    const auto end = static_cast<std::size_t>(n_features * (part + 1) / n_parts);
    const auto range = [&](std::size_t i) {
      return std::pair(static_cast<std::size_t>(thresholds.start[i]),
                       static_cast<std::size_t>(thresholds.start[i + 1] - thresholds.start[i]));
    };
    std::vector<GapsOfFeature> gaps;
    for (std::size_t i = begin; i < end; ++i) {
      const auto [first, n] = range(i);
      gaps.emplace_back(thresholds.features[i], thresholds.value.subspan(first, n));
    }
    for (std::int64_t row = 0; row < rows.n_rows; row += kBlock)
      for (GapsOfFeature& of : gaps) {
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
