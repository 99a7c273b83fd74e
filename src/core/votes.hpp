// What the nodes of a tree vote for, and what all their votes come to.
#pragma once

#include "counts.hpp"

namespace certree {

// What nodes vote for: labels (m,), or the rows of frequency (m, n_classes), which sum to 1, or
// what frequencies() would make of counts. Numbers have one "class", whose frequency is the mean.
struct Values {
  std::span<const std::int32_t> label;
  Table<const double> frequency;
  Counts counts;
  Smoothing smoothing;
  std::int64_t n_classes = 0;

  bool are_counts() const { return label.empty() && !frequency.data; }
};

// What a node votes for at a time, for all classes or for few.
class NodeValues {
 public:
  explicit NodeValues(const Values& values)
      : values_(values),
        unit_(values.smoothing.unit()),
        counted_(values.are_counts() ? static_cast<std::size_t>(values.n_classes) : 0) {}

  // Goes on to a node; the node before is forgotten.
  CERTREE_INLINE void see(std::size_t v) {
    if (!counted_.empty()) {
      values_.counts.each(at_, [&](std::int64_t k, double) { counted(k) = 0.0; });
      n_ = 0.0;
      values_.counts.each(
          v, [&](std::int64_t k, double weight) { n_ += counted(k) = weight / unit_; });
      n_ += values_.smoothing.rows;
    }
    at_ = v;
  }

  // The value of class k there, if it is so much at the parent.
  CERTREE_INLINE double operator()(std::int64_t k, double at_parent) {
    if (values_.frequency.data) return values_.frequency.row(at_)[k];
    if (counted_.empty()) return static_cast<double>(values_.label[at_] == k);
    return n_ > 0.0 ? (counted(k) + values_.smoothing.rows * at_parent) / n_ : at_parent;
  }

  // The values (n_classes,) of the parent become those of the node.
  CERTREE_INLINE void replace(double* value) {
    const std::int64_t n_classes = values_.n_classes;
    if (counted_.empty()) {
      for (std::int64_t k = 0; k < n_classes; ++k) value[k] = (*this)(k, value[k]);
    } else if (n_ > 0.0) {
      const double* const own = counted_.data();
      for (std::int64_t k = 0; k < n_classes; ++k)
        value[k] = (own[k] + values_.smoothing.rows * value[k]) / n_;
    }
  }

 private:
  double& counted(std::int64_t k) { return counted_[static_cast<std::size_t>(k)]; }

  const Values& values_;
  double unit_;
  std::vector<double> counted_;  // (n_classes,) zero but for the classes of the node
  std::size_t at_ = 0;
  double n_ = 0.0;
};

// score: (m, n_classes), path sums of weight[v] * value(v, k).
void push_down(Shape tree, std::span<const double> weight, const Values& values,
               Table<double> score);

// The same for some nodes, ascending, in little memory beside their scores (n_nodes, n_classes).
// rest: (m,) what a node weighs more in its own score, though not in those below; or empty.
void push_down_to(Shape tree, std::span<const double> weight, std::span<const double> rest,
                  const Values& values, std::span<const std::int32_t> nodes, Table<double> score);

// moved: (m,) the values of nodes, value (m,), moved as little as it takes for the values of every
// pruning's leaves to rise (slope 1) or fall (slope -1) along each feature: slope int8 (p,).
// The middle between two children bounds all values below them.
void make_monotone(Shape tree, std::span<const std::int32_t> feature,
                   std::span<const std::int8_t> slope, std::span<const double> value,
                   std::span<double> moved);

}  // namespace certree
