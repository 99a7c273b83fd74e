#include "grow/placement.hpp"

#include "count_below.hpp"
#include "grow/thresholds.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

// Number of rows of a block. A block is read once for each feature: it is small enough to stay in
// the cache, and large enough that loading the thresholds of a feature costs little.
constexpr std::int64_t kBlock = 4096;

// A node that compares a feature with a threshold.
struct ThresholdSplit {
  std::int32_t feature;
  std::size_t node;
  double threshold;
};

// Returns the splits by thresholds, sorted by feature and threshold.
std::vector<ThresholdSplit> collect_threshold_splits(const TreeView& tree) {
  std::vector<ThresholdSplit> found;
  for (const std::size_t v : indices(tree.left.size()))
    if (tree.left[v] != kLeaf && !tree.has_set(v))
      found.push_back({tree.feature[v], v, tree.threshold[v]});
  const auto is_before = [](const ThresholdSplit& a, const ThresholdSplit& b) {
    return a.feature != b.feature ? a.feature < b.feature : a.threshold < b.threshold;
  };
  with_interrupt_checks(std::ssize(found), is_before,
                        [&](const auto& f) { std::sort(found.begin(), found.end(), f); });
  return found;
}

// Gaps of the thresholds of one feature, from the values of the rows that have been added.
class FeatureGaps {
 public:
  // splits: those of one feature, sorted by threshold.
  explicit FeatureGaps(std::span<const ThresholdSplit> splits)
      : splits_(splits), ranges_(splits.size() + 1) {
    for (const ThresholdSplit& one : splits) threshold_.push_back(one.threshold);
    pad_thresholds(threshold_);
  }

  // Adds the values of the rows begin, ..., end - 1.
  template <class Real>
  void add(Table<const Real> rows, std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kMost = kValuesAtOnce;
    for (; begin < end; begin += kMost) add_some(rows, begin, std::min(end - begin, kMost));
  }

  // Writes the placed thresholds. Call it after all rows have been added.
  void write_placed(bool at_middle, const PlacedThresholds& placed) const {
    double least = kInfinity, most = -kInfinity;
    for (std::size_t t = splits_.size(); t-- > 0;)
      placed.high[splits_[t].node] = least = std::min(least, ranges_[t + 1].least);
    for (std::size_t t = 0; t < splits_.size(); ++t) {
      const auto [feature, v, threshold] = splits_[t];
      most = std::max(most, ranges_[t].most);
      const bool is_below_all = most == -kInfinity;
      const bool is_above_all = threshold == kAllLeft && most < kAllLeft;
      if (is_below_all || is_above_all) continue;
      const double high = placed.high[v];
      placed.low[v] = most;
      placed.threshold[v] =
          at_middle ? threshold_between(most, high) : threshold_near(threshold, most, high);
    }
  }

 private:
  struct Range {
    double least = kInfinity, most = -kInfinity;
  };

  template <class Real>
  void add_some(Table<const Real> rows, std::int64_t first, std::int64_t n) {
    const std::int32_t feature = splits_.front().feature;
    std::array<double, kValuesAtOnce> value{};
    for (std::int64_t i = 0; i < n; ++i)  // + 0.0 turns -0.0 into 0.0
      value[static_cast<std::size_t>(i)] = static_cast<double>(rows.row(first + i)[feature]) + 0.0;
    std::array<std::uint64_t, kValuesAtOnce> below;
    count_below(threshold_.data(), threshold_.size(), value.data(), below.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      // Comparisons with NaN are false, so NaN changes no range.
      Range& range = ranges_[below[i]];
      range.least = value[i] < range.least ? value[i] : range.least;
      range.most = value[i] > range.most ? value[i] : range.most;
    }
  }

  std::span<const ThresholdSplit> splits_;
  std::vector<double> threshold_;  // of the splits, padded
  // Range t: the smallest and the largest value above threshold t - 1 and not above threshold t.
  // The first range has no lower limit, the last one no upper limit.
  std::vector<Range> ranges_;
};

}  // namespace

template <class Real>
void place_thresholds(const TreeView& tree, Table<const Real> rows, bool at_middle, int n_threads,
                      const PlacedThresholds& placed) {
  std::copy(tree.threshold.begin(), tree.threshold.end(), placed.threshold.begin());
  fill(placed.low, -kInfinity);
  fill(placed.high, kInfinity);
  const std::vector<ThresholdSplit> splits = collect_threshold_splits(tree);
  std::vector<FeatureGaps> features;
  for (auto first = splits.begin(); first != splits.end();) {
    const auto is_other = [&](const ThresholdSplit& one) { return one.feature != first->feature; };
    const auto last = std::find_if(first, splits.end(), is_other);
    features.emplace_back(std::span(first, last));
    first = last;
  }
  const std::size_t n = features.size(),
                    n_parts = std::min(static_cast<std::size_t>(std::max(n_threads, 1)), n);
  parallel_for(static_cast<std::int64_t>(n_parts), n_threads, [&](std::int64_t task) {
    const auto part = static_cast<std::size_t>(task);
    const std::size_t begin = n * part / n_parts, end = n * (part + 1) / n_parts;
    const std::span<FeatureGaps> own = std::span(features).subspan(begin, end - begin);
    for (std::int64_t row = 0; row < rows.n_rows; row += kBlock)
      for (FeatureGaps& feature : own) {
        count_steps(kBlock);
        feature.add(rows, row, std::min(row + kBlock, rows.n_rows));
      }
    for (const FeatureGaps& feature : own) feature.write_placed(at_middle, placed);
  });
}

template void place_thresholds(const TreeView&, Table<const float>, bool, int,
                               const PlacedThresholds&);
template void place_thresholds(const TreeView&, Table<const double>, bool, int,
                               const PlacedThresholds&);

}  // namespace certree
