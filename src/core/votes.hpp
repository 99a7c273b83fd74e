// Votes of nodes, and their weighted sums along the path from the root to each node.
#pragma once

#include "counts.hpp"

namespace certree {

// The votes of all nodes, in one of three forms:
//   label:     (m,) each node votes for one class;
//   frequency: (m, n_classes) each node divides its vote between classes; rows sum to 1;
//   counts:    the frequencies that frequencies() would compute of counts and smoothing.
// A numeric target has one "class", whose frequency is the mean of the node.
struct Votes {
  std::span<const std::int32_t> label;
  Table<const double> frequency;
  Counts counts;
  Smoothing smoothing;
  std::int64_t n_classes = 0;

  bool are_counts() const { return label.empty() && !frequency.data; }
};

// Reads the vote of one node at a time, of all classes or of some. Frequencies of counts need those
// of the parent, which the caller passes in.
class VoteReader {
 public:
  explicit VoteReader(const Votes& votes)
      : votes_(votes),
        unit_(votes.smoothing.unit()),
        weight_(votes.are_counts() ? static_cast<std::size_t>(votes.n_classes) : 0) {}

  // Makes v the current node.
  CERTREE_INLINE void move_to(std::size_t v) {
    if (!weight_.empty()) {
      votes_.counts.for_each_class(node_, [&](std::int64_t k, double) { weight_of(k) = 0.0; });
      total_ = 0.0;
      votes_.counts.for_each_class(
          v, [&](std::int64_t k, double weight) { total_ += weight_of(k) = weight / unit_; });
      total_ += votes_.smoothing.rows;
    }
    node_ = v;
  }

  // Returns the current node's vote for class k, given that of its parent.
  CERTREE_INLINE double vote_for(std::int64_t k, double parent_vote) {
    if (votes_.frequency.data) return votes_.frequency.row(node_)[k];
    if (weight_.empty()) return static_cast<double>(votes_.label[node_] == k);
    return total_ > 0.0 ? (weight_of(k) + votes_.smoothing.rows * parent_vote) / total_
                        : parent_vote;
  }

  // Replaces the votes (n_classes,) of the parent by those of the current node.
  CERTREE_INLINE void update(double* vote) {
    const std::int64_t n_classes = votes_.n_classes;
    if (weight_.empty()) {
      for (std::int64_t k = 0; k < n_classes; ++k) vote[k] = vote_for(k, vote[k]);
    } else if (total_ > 0.0) {
      const double* const weight = weight_.data();
      for (std::int64_t k = 0; k < n_classes; ++k)
        vote[k] = (weight[k] + votes_.smoothing.rows * vote[k]) / total_;
    }
  }

 private:
  double& weight_of(std::int64_t k) { return weight_[static_cast<std::size_t>(k)]; }

  const Votes& votes_;
  double unit_;
  std::vector<double> weight_;  // (n_classes,) class weights of the current node; empty: no counts
  std::size_t node_ = 0;
  double total_ = 0.0;  // weight of the current node, with smoothing
};

// Computes scores of all nodes. score: (m, n_classes) sum of weight[u] * vote(u, k) over the path
// of nodes u from the root to each node. The votes must be labels or frequencies.
void push_down(Shape tree, std::span<const double> weight, const Votes& votes, Table<double> score);

// Computes the scores of some nodes, ascending, with memory for these nodes only. score: (n_nodes,
// n_classes). rest: (m,) further weight of a node in its own score, but not in those of its
// descendants; or empty.
void push_down_to(Shape tree, std::span<const double> weight, std::span<const double> rest,
                  const Votes& votes, std::span<const std::int32_t> nodes, Table<double> score);

// Enforces monotonic constraints on the values (m,) of all nodes, such that the leaves of every
// pruning keep them. monotonic_cst: (p,) 1: rising along a feature, -1: falling, 0: no constraint.
// Values of two children in the wrong order are replaced by their mean, and the mean of two
// children bounds all values below them. result: (m,).
void make_monotone(Shape tree, std::span<const std::int32_t> feature,
                   std::span<const std::int8_t> monotonic_cst, std::span<const double> value,
                   std::span<double> result);

}  // namespace certree
