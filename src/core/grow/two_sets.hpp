// Splits of categories in two sets that minimise the impurity of the response.
//
// For squared loss, and for two classes under any concave impurity, some prefix of the categories
// sorted by their means is optimal (Fisher, "On grouping for maximum homogeneity", 1958; Breiman et
// al., "Classification and Regression Trees", 1984, Theorem 4.5). For more classes, all splits are
// compared if there are few categories. Else all prefixes are compared of the order along the first
// principal component of the class probabilities (Coppersmith, Hong & Hosking, "Partitioning
// nominal attributes in decision trees", 1999), which need not contain the best split.
#pragma once

#include <bit>

#include "interrupt.hpp"

namespace certree {

// Largest number of categories of which all splits are compared, for more than two classes: 2047
// splits, which take about as long as a pass over as many rows.
inline constexpr std::size_t kMostEnumerated = 12;

// The categories of a node, ascending, each with sums over its rows: first the weight, then one for
// each response or class.
class Groups {
 public:
  // width: number of these sums; n_sums: number of all sums of a group, if there are further ones.
  explicit Groups(std::size_t width, std::size_t n_sums = 0)
      : width_(width), n_sums_(std::max(width, n_sums)) {}

  void clear() {
    codes_.clear();
    sums_.clear();
  }
  void add(std::uint32_t code, const double* sums) {
    codes_.push_back(code);
    sums_.insert(sums_.end(), sums, sums + n_sums_);
  }
  void add_to_last(const double* sums) {
    double* const last = sums_.data() + (size() - 1) * n_sums_;
    for (std::size_t k = 0; k < n_sums_; ++k) last[k] += sums[k];
  }
  // Returns the sums over all groups, (width,).
  std::vector<double> total() const {
    std::vector<double> sums(width_);
    for (const std::size_t g : indices(size(), width_))
      for (std::size_t k = 0; k < width_; ++k) sums[k] += this->sums(g)[k];
    return sums;
  }
  std::size_t size() const { return codes_.size(); }
  std::size_t width() const { return width_; }
  std::uint32_t code(std::size_t g) const { return codes_[g]; }
  const double* sums(std::size_t g) const { return sums_.data() + g * n_sums_; }
  // Returns the mean of response k, or the probability of class k, in a group.
  double mean(std::size_t g, std::size_t k) const { return sums(g)[1 + k] / sums(g)[0]; }

 private:
  std::size_t width_, n_sums_;
  std::vector<std::uint32_t> codes_;
  std::vector<double> sums_;  // (k, n_sums)
};

// Returns the projection of each group's class probabilities on their first principal component. It
// is found by a fixed number of power iterations, from the covariances of the class of the largest
// variance.
inline std::vector<double> principal_scores(const Groups& groups) {
  constexpr int kIterations = 50;
  const std::size_t n_classes = groups.width() - 1, n_groups = groups.size();
  std::vector<double> mean(n_classes), deviation(n_classes);
  std::vector<double> covariance(checked_size(n_classes, n_classes));
  double total = 0.0;
  for (const std::size_t g : indices(n_groups, n_classes)) {
    total += groups.sums(g)[0];
    for (std::size_t k = 0; k < n_classes; ++k) mean[k] += groups.sums(g)[1 + k];
  }
  for (double& one : mean) one /= total;
  for (const std::size_t g : indices(n_groups, n_classes * n_classes)) {
    for (std::size_t k = 0; k < n_classes; ++k) deviation[k] = groups.mean(g, k) - mean[k];
    for (std::size_t k = 0; k < n_classes; ++k)
      for (std::size_t l = 0; l < n_classes; ++l)
        covariance[k * n_classes + l] += groups.sums(g)[0] * deviation[k] * deviation[l];
  }
  std::size_t widest = 0;
  for (std::size_t k = 1; k < n_classes; ++k)
    if (covariance[k * n_classes + k] > covariance[widest * n_classes + widest]) widest = k;
  const auto row = [&](std::size_t k) {
    return covariance.begin() + static_cast<std::ptrdiff_t>(k * n_classes);
  };
  std::vector<double> axis(row(widest), row(widest + 1)), image(n_classes);
  for (int i = 0; i < kIterations; ++i) {
    double norm = 0.0;
    for (std::size_t k = 0; k < n_classes; ++k) {
      image[k] = std::inner_product(axis.begin(), axis.end(), row(k), 0.0);
      norm = std::max(norm, std::abs(image[k]));
    }
    for (std::size_t k = 0; k < n_classes; ++k) axis[k] = image[k] / norm;
  }
  std::vector<double> scores(n_groups, 0.0);
  for (const std::size_t g : indices(n_groups, n_classes))
    for (std::size_t k = 0; k < n_classes; ++k) scores[g] += axis[k] * groups.mean(g, k);
  return scores;
}

// Finds the best split of groups in two sets. Its memory is reused from search to search.
class Divider {
 public:
  Divider(std::size_t width, std::size_t n_sums) : merged_(width, n_sums) {}

  // Returns whether each group goes left, after a successful search.
  const std::vector<std::uint8_t>& left() const { return left_; }
  // Returns whether the last search may have missed the best split.
  bool heuristic() const { return heuristic_; }

  // Finds the split of the largest value, if it exceeds `value`, which is replaced by it; returns
  // whether there is one. sweep: holds the sums of the left child, computes the value of a split,
  // and the scores of groups if is_ordered(); allowed(): whether its current split is allowed. On
  // ties the first split is taken.
  template <class Sweep, class Allowed>
  bool search(Sweep& sweep, const Groups& groups, const Allowed& allowed, double& value) {
    heuristic_ = false;
    if (!sweep.is_ordered()) merge_equal_groups(groups);
    if (sweep.is_ordered() || merged_.size() == 1) {
      scores_.resize(groups.size());
      for (std::size_t g = 0; g < groups.size(); ++g) scores_[g] = sweep.score(groups.sums(g));
      return best_prefix(sweep, groups, allowed, value);
    }
    bool found;
    if (merged_.size() <= kMostEnumerated) {
      found = best_of_all(sweep, allowed, value);
    } else {
      heuristic_ = true;
      scores_ = principal_scores(merged_);
      found = best_prefix(sweep, merged_, allowed, value);
    }
    if (found) copy_to_groups(groups.size());
    return found;
  }

 private:
  // Searches all prefixes of the groups in the order of their scores.
  template <class Sweep, class Allowed>
  bool best_prefix(Sweep& sweep, const Groups& groups, const Allowed& allowed, double& value) {
    order_by_scores();
    std::size_t best = 0;
    sweep.restart();
    for (const std::size_t left : indices(order_.size() - 1, groups.width())) {
      const std::size_t i = left + 1;
      sweep.take(groups.sums(order_[i - 1]), 1.0);
      if (is_better(sweep, allowed, value)) best = i;
    }
    if (best == 0) return false;
    left_.assign(groups.size(), 0);
    for (std::size_t i = 0; i < best; ++i) left_[order_[i]] = 1;
    return true;
  }

  // Sorts the groups by score, ties by number.
  void order_by_scores() {
    order_.resize(scores_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      return scores_[a] < scores_[b] || (scores_[a] == scores_[b] && a < b);
    };
    with_interrupt_checks(order_.size(), is_before,
                          [&](const auto& f) { std::ranges::sort(order_, f); });
  }

  // Searches all splits of the merged groups. The last group stays right; the splits are visited in
  // the order of a Gray code, in which one group moves at a time.
  template <class Sweep, class Allowed>
  bool best_of_all(Sweep& sweep, const Allowed& allowed, double& value) {
    std::uint32_t set = 0, best = 0;
    sweep.restart();
    for (std::uint32_t step = 1; step < 1u << (merged_.size() - 1); ++step) {
      const auto g = static_cast<std::size_t>(std::countr_zero(step));
      set ^= 1u << g;
      sweep.take(merged_.sums(g), set >> g & 1u ? 1.0 : -1.0);
      if (is_better(sweep, allowed, value)) best = set;
    }
    if (best == 0) return false;
    left_.resize(merged_.size());
    for (std::size_t g = 0; g < merged_.size(); ++g)
      left_[g] = static_cast<std::uint8_t>(best >> g & 1u);
    return true;
  }

  template <class Sweep, class Allowed>
  static bool is_better(const Sweep& sweep, const Allowed& allowed, double& value) {
    const double here = sweep.value();
    if (!(here > value && allowed())) return false;
    value = here;
    return true;
  }

  // Merges groups with the same class probabilities: as impurities are concave, some optimal split
  // keeps them together.
  void merge_equal_groups(const Groups& groups) {
    const std::size_t n_classes = groups.width() - 1;
    probabilities_.resize(checked_size(groups.size(), n_classes));
    for (std::size_t g = 0; g < groups.size(); ++g)
      for (std::size_t k = 0; k < n_classes; ++k)
        probabilities_[g * n_classes + k] = groups.mean(g, k);
    const auto compare = [&](std::size_t a, std::size_t b) {
      const auto* x = probabilities_.data() + a * n_classes;
      const auto* y = probabilities_.data() + b * n_classes;
      return std::lexicographical_compare_three_way(x, x + n_classes, y, y + n_classes);
    };
    order_.resize(groups.size());
    std::iota(order_.begin(), order_.end(), 0u);
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      const auto ordering = compare(a, b);
      return ordering < 0 || (ordering == 0 && a < b);
    };
    with_interrupt_checks(order_.size(), is_before,
                          [&](const auto& f) { std::ranges::sort(order_, f); });
    merged_.clear();
    part_of_.resize(groups.size());
    for (const std::size_t i : indices(order_.size(), n_classes)) {
      const std::uint32_t g = order_[i];
      if (i > 0 && compare(order_[i - 1], g) == 0)
        merged_.add_to_last(groups.sums(g));
      else
        merged_.add(groups.code(g), groups.sums(g));
      part_of_[g] = static_cast<std::uint32_t>(merged_.size() - 1);
    }
  }

  // Gives each group the child of the merged group that it belongs to.
  void copy_to_groups(std::size_t n_groups) {
    const std::vector<std::uint8_t> merged_left = left_;
    left_.resize(n_groups);
    for (std::size_t g = 0; g < n_groups; ++g) left_[g] = merged_left[part_of_[g]];
  }

  bool heuristic_ = false;
  Groups merged_;
  std::vector<std::uint32_t> part_of_;  // (k,) merged group of each group
  std::vector<std::uint32_t> order_;
  std::vector<double> scores_, probabilities_;
  std::vector<std::uint8_t> left_;
};

}  // namespace certree
