// Sums over the rows of a CART node by the values of features with few values.
//
// The sums are of integers, so they do not depend on the order of the rows.
#pragma once

#include "grow/cart_nodes.hpp"
#include "grow/two_sets.hpp"

namespace certree {
namespace {

// The sums of one node at a time.
template <class Rows, class Sweep>
class Counts {
 public:
  Counts(const Rows& rows, std::size_t width)
      : rows_(rows), width_(width), sums_(checked_size(rows.few->n_slots(), width)), all_(width) {}

  // Sums up the rows of a node, to which the functions below then refer.
  void count(const GrowingNode& node, const Sweep& sweep, int n_threads) {
    if (rows_.few->empty()) return;
    const auto members = rows_.members(node);
    std::fill(all_.begin(), all_.end(), 0.0);
    for (const auto part : chunks(members))
      for (const RankedRow& e : part) sweep.add(all_.data(), e.row);
    const int n_parts = threads_for(node, n_threads);
    std::vector<std::vector<double>> others(static_cast<std::size_t>(n_parts - 1));
    parallel_for(n_parts, n_parts, [&](std::int64_t i) {
      auto& sums = i == 0 ? sums_ : others[static_cast<std::size_t>(i - 1)];
      sums.assign(sums_.size(), 0.0);
      const std::int64_t m = std::ssize(members);
      count_some(members.subspan(static_cast<std::size_t>(m * i / n_parts),
                                 static_cast<std::size_t>(m * (i + 1) / n_parts - m * i / n_parts)),
                 sweep, sums.data());
    });
    for (const auto& sums : others)
      std::ranges::transform(sums, sums_, sums_.begin(), std::plus<>());
  }

  // Returns whether a feature varies in the node.
  bool varies(std::int64_t j) const {
    const auto& feature = rows_.few->feature(j);
    const double* const sums = sums_.data() + feature.first_slot * width_;
    double unusual = 0.0, most = 0.0;
    for (std::size_t slot = 0; slot < feature.n_slots(); ++slot) {
      unusual += sums[slot * width_];
      most = std::max(most, sums[slot * width_]);
    }
    return unusual > 0.0 && most < all_[0];
  }

  // Writes the values of a feature that occur in the node to groups, ascending, with their sums.
  void collect(std::int64_t j, Groups& groups) const {
    const auto& feature = rows_.few->feature(j);
    const double* sums = sums_.data() + feature.first_slot * width_;
    thread_local std::vector<double> usual;
    usual = all_;
    for (std::size_t k = 0; k < feature.n_slots() * width_; ++k) usual[k % width_] -= sums[k];
    groups.clear();
    for (std::size_t v = 0; v < feature.values.size(); ++v) {
      const double* const here = v == feature.usual ? usual.data() : sums;
      if (here[0] > 0.0) groups.add(static_cast<std::uint32_t>(v), here);
      if (v != feature.usual) sums += width_;
    }
  }

 private:
  void count_some(std::span<const RankedRow> members, const Sweep& sweep, double* sums) const {
    StepCounter counter;
    for (const RankedRow& e : members) {
      const auto slots = rows_.few->of_row(rows_.row_of_X(e));
      for (const std::uint32_t slot : slots) sweep.add(sums + slot * width_, e.row);
      counter.add(std::ssize(slots) + 1);
    }
    counter.flush();
  }

  Rows rows_;
  std::size_t width_;
  std::vector<double> sums_;  // (number of slots, width)
  std::vector<double> all_;   // (width,) of all rows of the node
};

}  // namespace
}  // namespace certree
