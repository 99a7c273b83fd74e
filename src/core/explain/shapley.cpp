#include "explain/shapley.hpp"

#include "explain/paths.hpp"

namespace certree {
namespace {

// Rows that are computed together by vector instructions.
constexpr std::size_t kLanes = 8;
// One number for each of these rows.
struct Lanes {
  std::array<double, kLanes> at;
};

// -- one tree and kLanes rows, by products along paths

// Working memory for one tree. `match` and `chance` have one entry for each node, of the feature of
// the edge to it; the others one for each node and point of the mixture.
struct Scratch {
  std::vector<Lanes> match, product, inverse, sum;
  std::vector<double> chance;

  void reserve(std::size_t m, std::size_t n_points) {
    if (match.size() < m) {
      match.resize(m);
      chance.resize(m);
    }
    if (product.size() < m * n_points)
      for (auto* column : {&product, &inverse, &sum}) column->resize(m * n_points);
  }
};

// Computes, for each node and point t, the product of chance + t (match - chance) over the features
// of its path, and the inverse of this factor for the feature of the edge to the node.
CERTREE_SIMD_CLONES void multiply_down(const Paths& paths, std::span<const double> chance,
                                       std::span<const Lanes> match, std::span<const double> point,
                                       Lanes* product, Lanes* inverse) noexcept {
  const std::size_t n_points = point.size();
  for (std::size_t q = 0; q < n_points; ++q) product[q].at.fill(1.0);
  for (std::size_t v = 1; v < paths.size(); ++v) {
    const double node_chance = chance[v];
    const Lanes node_match = match[v];
    const Lanes* const above = product + static_cast<std::size_t>(paths.parent[v]) * n_points;
    // The factor of the same feature so far is divided out of the product above.
    const std::int32_t e = paths.previous[v];
    const Lanes* const divisor = e < 0 ? nullptr : inverse + static_cast<std::size_t>(e) * n_points;
    for (std::size_t q = 0; q < n_points; ++q) {
      Lanes factor, reciprocal;
      for (std::size_t w = 0; w < kLanes; ++w)
        factor.at[w] = node_chance + point[q] * (node_match.at[w] - node_chance);
      // A factor of 0 means that no row gets here, so that nodes below contribute nothing.
      for (std::size_t w = 0; w < kLanes; ++w) {
        const double quotient = 1.0 / factor.at[w];
        reciprocal.at[w] = factor.at[w] > 0.0 ? quotient : 0.0;
      }
      inverse[v * n_points + q] = reciprocal;
      for (std::size_t w = 0; w < kLanes; ++w) factor.at[w] *= above[q].at[w];
      if (divisor)
        for (std::size_t w = 0; w < kLanes; ++w) factor.at[w] *= divisor[q].at[w];
      product[v * n_points + q] = factor;
    }
  }
}

// Adds to attribution the contribution of the edge to node v to the value of the edge's feature, by
// sums over the leaves below. The contribution of the previous edge of the same feature is
// replaced.
CERTREE_INLINE void add_edge(std::span<const double> chance, std::span<const Lanes> match,
                             std::int32_t previous, std::size_t v, std::size_t n_points,
                             const Lanes* inverse, const Lanes* sum, Lanes& attribution) {
  Lanes difference, difference_above{};
  for (std::size_t w = 0; w < kLanes; ++w) difference.at[w] = match[v].at[w] - chance[v];
  const std::size_t e = previous < 0 ? 0 : static_cast<std::size_t>(previous);
  if (previous >= 0)
    for (std::size_t w = 0; w < kLanes; ++w) difference_above.at[w] = match[e].at[w] - chance[e];
  for (std::size_t q = 0; q < n_points; ++q) {
    const Lanes &here = inverse[v * n_points + q], &there = inverse[e * n_points + q];
    const Lanes& below = sum[v * n_points + q];
    for (std::size_t w = 0; w < kLanes; ++w)
      attribution.at[w] +=
          (difference.at[w] * here.at[w] - difference_above.at[w] * there.at[w]) * below.at[w];
  }
}

// Adds the values of all features for one output to attribution, (p,). Sums of leaf value times
// product are accumulated from the leaves up. value: of the output, with a stride of n_outputs.
CERTREE_SIMD_CLONES void sum_up(const Paths& paths, std::span<const double> chance,
                                std::span<const Lanes> match, std::span<const double> weight,
                                const double* value, std::int64_t n_outputs, const Lanes* product,
                                const Lanes* inverse, Lanes* sum, Lanes* attribution) noexcept {
  const std::size_t n_points = weight.size();
  for (std::size_t v = paths.size(); v-- > 0;) {
    Lanes* const node_sum = sum + v * n_points;
    if (paths.is_leaf(v)) {
      const double leaf_value = value[static_cast<std::int64_t>(paths.root + v) * n_outputs];
      for (std::size_t q = 0; q < n_points; ++q)
        for (std::size_t w = 0; w < kLanes; ++w)
          node_sum[q].at[w] = leaf_value * weight[q] * product[v * n_points + q].at[w];
      continue;
    }
    const auto left = static_cast<std::size_t>(paths.left[v]);
    Lanes& feature_value = attribution[paths.feature[left]];
    for (const std::size_t child : {left, left + 1})
      add_edge(chance, match, paths.previous[child], child, n_points, inverse, sum, feature_value);
    const Lanes *const first = sum + left * n_points, *const second = first + n_points;
    for (std::size_t q = 0; q < n_points; ++q)
      for (std::size_t w = 0; w < kLanes; ++w) node_sum[q].at[w] = first[q].at[w] + second[q].at[w];
  }
}

// Computes, for every node and for the rows first, ..., first + width - 1, the fraction of the row
// that passes all tests of the edge's feature on the path to the node. entry(v, w) returns a
// reference to the result of row first + w at node v.
template <class Real, class Router, class Entry>
void find_matches(const TreesView& trees, const Router& router, const MissingRouting& missing,
                  const Paths& paths, const Table<const Real>& X, std::int64_t first,
                  std::size_t width, const Entry& entry) {
  for (std::size_t w = 0; w < width; ++w) entry(0, w) = 1.0;
  for (std::size_t u = 0; u < paths.size(); ++u) {
    if (paths.is_leaf(u)) continue;
    const auto left = static_cast<std::size_t>(paths.left[u]);
    const std::int32_t e = paths.previous[left];
    for (std::size_t w = 0; w < width; ++w) {
      const double above = e < 0 ? 1.0 : entry(static_cast<std::size_t>(e), w);
      entry(left, w) = entry(left + 1, w) = 0.0;
      visit_reached_children(
          trees, router, missing, paths, u, X.row(first + static_cast<std::int64_t>(w)),
          [&](std::size_t child, double fraction) { entry(left + child, w) = fraction * above; });
    }
  }
}

// Returns, for every node, the probability that a training row passes all tests of the edge's
// feature on the path to the node, by the weights of the nodes. node_weight: of the nodes of all
// trees.
std::vector<double> chances_by_cover(const Paths& paths, std::span<const double> node_weight) {
  std::vector<double> chance(paths.size(), 1.0);
  for (std::size_t u = 0; u < paths.size(); ++u) {
    if (paths.is_leaf(u)) continue;
    const auto left = static_cast<std::size_t>(paths.left[u]);
    const std::int32_t e = paths.previous[left];
    const double above = e < 0 ? 1.0 : chance[static_cast<std::size_t>(e)];
    const double* const weight = node_weight.data() + paths.root + left;
    // Weights are halved, as the sum of both may exceed the largest float64.
    const double half_left = weight[0] / 2, half_sum = half_left + weight[1] / 2;
    const double left_fraction = half_sum > 0.0 ? half_left / half_sum : 0.5;
    chance[left] = above * left_fraction;
    chance[left + 1] = above * (1.0 - left_fraction);
  }
  return chance;
}

// Adds the values of a tree for the rows of scratch.match to attribution, (n_outputs * p,).
void add_values(const TreesView& trees, const Paths& paths, std::span<const double> chance,
                const Mixture& mixture, std::int64_t p, Scratch& scratch, Lanes* attribution,
                StepCounter& counter) {
  const auto work = static_cast<std::int64_t>(paths.size() * mixture.point.size() * kLanes);
  counter.add(work * (1 + trees.value.width));
  multiply_down(paths, chance, scratch.match, mixture.point, scratch.product.data(),
                scratch.inverse.data());
  for (std::int64_t k = 0; k < trees.value.width; ++k)
    sum_up(paths, chance, scratch.match, mixture.weight, trees.value.data + k, trees.value.width,
           scratch.product.data(), scratch.inverse.data(), scratch.sum.data(), attribution + k * p);
}

// Adds the lanes, times a factor, to the rows first, ..., first + width - 1 of attribution.
void add_lanes(const std::vector<Lanes>& lanes, std::int64_t first, std::size_t width,
               double factor, const Table<double>& attribution) {
  for (std::size_t w = 0; w < width; ++w) {
    double* const row = attribution.row(first + static_cast<std::int64_t>(w));
    for (std::size_t j = 0; j < lanes.size(); ++j) row[j] += factor * lanes[j].at[w];
  }
}

// -- one tree and a background, by groups of rows that pass the tests of the same features of a
// path

// Rows grouped by the set of features of a path whose tests they fail.
struct Groups {
  std::vector<std::int32_t> group;   // (n_rows,) number of the group of each row
  std::vector<std::uint64_t> fails;  // (n_groups,) the set: a bit for each slot of the path

  // Puts all rows in one group, at the root.
  void start(std::size_t n_rows) {
    group.assign(n_rows, 0);
    fails.assign(1, 0);
  }

  // Divides the groups of the parent by passes(i): whether row i passes the test of the edge from
  // there, whose feature has this slot. number: scratch memory.
  template <class Passes>
  void divide(const Groups& above, std::int32_t slot, std::vector<std::int32_t>& number,
              const Passes& passes) {
    number.assign(2 * above.fails.size(), -1);
    group.resize(above.group.size());
    fails.clear();
    const std::uint64_t bit = std::uint64_t{1} << slot;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto g = static_cast<std::size_t>(above.group[i]);
      const bool failed = !passes(static_cast<std::int64_t>(i)) || (above.fails[g] & bit) != 0;
      std::int32_t& new_group = number[2 * g + static_cast<std::size_t>(failed)];
      if (new_group < 0) {
        new_group = static_cast<std::int32_t>(fails.size());
        fails.push_back(failed ? above.fails[g] | bit : above.fails[g]);
      }
      group[i] = new_group;
    }
  }
};

// Largest number of features of a path that fit into a set.
constexpr std::int32_t kMostSlots = 64;

// Table of the value of a feature for a leaf of value 1, a row and a background row, of which the
// row passes the tests of s features that the background row fails, and the background row those of
// u features that the row fails: each of the s features has the value at(s, u), each of the u
// features -at(u, s), and all other features 0.
class LeafValues {
 public:
  LeafValues(const Mixture& mixture, std::int32_t n_slots)
      : width_(static_cast<std::size_t>(n_slots) + 1), values_(width_ * width_, 0.0) {
    for (std::size_t q = 0; q < mixture.point.size(); ++q) {
      double known = mixture.weight[q];  // weight * t^(s - 1)
      for (std::size_t s = 1; s < width_; ++s, known *= mixture.point[q]) {
        double product = known;  // weight * t^(s - 1) * (1 - t)^u
        for (std::size_t u = 0; u < width_; ++u, product *= 1.0 - mixture.point[q])
          values_[s * width_ + u] += product;
      }
    }
  }
  double at(int s, int u) const {
    return values_[static_cast<std::size_t>(s) * width_ + static_cast<std::size_t>(u)];
  }

 private:
  std::size_t width_;
  std::vector<double> values_;  // (width_, width_)
};

// Computes values_by_background() for one tree at a time, by passing groups of rows and of
// background rows from the root to each leaf.
template <class Real, class Router>
class GroupedValues {
 public:
  GroupedValues(const TreesView& trees, const Router& router, const Table<const Real>& background,
                const LeafValues& leaf_values)
      : trees_(trees), router_(router), background_(background), leaf_values_(leaf_values) {}

  // Adds the values of a tree for the rows of X to attribution. No row may go both ways at a node.
  void add(const Paths& paths, const Table<const Real>& X, const Table<double>& attribution,
           StepCounter& counter) {
    stack_.assign(1, {0, 0});
    while (!stack_.empty()) {
      const auto [v, depth] = stack_.back();
      stack_.pop_back();
      if (groups_at_depth_.size() <= depth) groups_at_depth_.resize(depth + 1);
      counter.add(X.n_rows + background_.n_rows);
      if (v == 0) {
        groups_at_depth_[0].rows.start(static_cast<std::size_t>(X.n_rows));
        groups_at_depth_[0].background.start(static_cast<std::size_t>(background_.n_rows));
      } else {
        divide(paths, v, X, groups_at_depth_[depth - 1].rows, groups_at_depth_[depth].rows);
        divide(paths, v, background_, groups_at_depth_[depth - 1].background,
               groups_at_depth_[depth].background);
      }
      if (paths.is_leaf(v)) {
        add_leaf(paths, v, groups_at_depth_[depth], attribution, counter);
        continue;
      }
      const auto left = static_cast<std::size_t>(paths.left[v]);
      stack_.push_back({left + 1, depth + 1});
      stack_.push_back({left, depth + 1});
    }
  }

 private:
  // The groups at the current node of each depth.
  struct NodeGroups {
    Groups rows, background;
  };

  // Computes the groups at node v from those at its parent.
  void divide(const Paths& paths, std::size_t v, const Table<const Real>& X, const Groups& above,
              Groups& groups) {
    const std::size_t u = paths.root + static_cast<std::size_t>(paths.parent[v]);
    const NodeTest test(trees_.nodes, u);
    const auto child = static_cast<std::int32_t>(paths.root + v);
    groups.divide(above, paths.slot[v], number_, [&](std::int64_t i) {
      return router_.child(test, static_cast<std::int32_t>(u), X.row(i)) == child;
    });
  }

  // Computes the fraction of the background rows in each group, and the number of features it
  // fails.
  void count(const Groups& background) {
    fraction_.assign(background.fails.size(), 0.0);
    for (const std::int32_t g : background.group) fraction_[static_cast<std::size_t>(g)] += 1.0;
    n_fails_.clear();
    for (const std::uint64_t fails : background.fails) n_fails_.push_back(std::popcount(fails));
    for (double& fraction : fraction_) fraction /= static_cast<double>(background_.n_rows);
  }

  // Adds to value, (n_slots,), the values of the features for rows that fail the set `fails`, for a
  // leaf of value 1. Returns whether any can differ from 0.
  bool fill_values(std::uint64_t fails, const Groups& background, double* value) const {
    const int u = std::popcount(fails);
    double value_of_failed = 0.0;  // negated
    bool any = false;
    for (std::size_t h = 0; h < background.fails.size(); ++h) {
      if (fails & background.fails[h]) continue;  // no coalition gets such a row to the leaf
      any = true;
      const int s = n_fails_[h];
      value_of_failed += fraction_[h] * leaf_values_.at(u, s);
      const double value_of_passed = fraction_[h] * leaf_values_.at(s, u);
      for (std::uint64_t rest = background.fails[h]; rest != 0; rest &= rest - 1)
        value[std::countr_zero(rest)] += value_of_passed;
    }
    for (std::uint64_t rest = fails; rest != 0; rest &= rest - 1)
      value[std::countr_zero(rest)] -= value_of_failed;
    return any;
  }

  void add_leaf(const Paths& paths, std::size_t v, const NodeGroups& node_groups,
                const Table<double>& attribution, StepCounter& counter) {
    const auto n_slots = static_cast<std::size_t>(paths.n_slots[v]);
    if (n_slots == 0) return;
    count(node_groups.background);
    paths.last_nodes(v, feature_);
    for (std::int32_t& entry : feature_) entry = paths.feature[static_cast<std::size_t>(entry)];
    const std::size_t n_groups = node_groups.rows.fails.size();
    counter.add(static_cast<std::int64_t>(n_groups * node_groups.background.fails.size()));
    value_.assign(n_groups * n_slots, 0.0);
    any_.resize(n_groups);
    for (std::size_t g = 0; g < n_groups; ++g)
      any_[g] =
          fill_values(node_groups.rows.fails[g], node_groups.background, &value_[g * n_slots]);
    const std::int64_t n_outputs = trees_.value.width, p = attribution.width / n_outputs;
    const double* const leaf_value = trees_.value.row(paths.root + v);
    for (std::int64_t i = 0; i < attribution.n_rows; ++i) {
      const auto g = static_cast<std::size_t>(node_groups.rows.group[static_cast<std::size_t>(i)]);
      if (!any_[g]) continue;
      const double* const value = &value_[g * n_slots];
      for (std::int64_t k = 0; k < n_outputs; ++k) {
        double* const row = attribution.row(i) + k * p;
        for (std::size_t slot = 0; slot < n_slots; ++slot)
          row[feature_[slot]] += leaf_value[k] * value[slot];
      }
    }
  }

  struct Pending {
    std::size_t node, depth;
  };

  const TreesView& trees_;
  const Router& router_;
  const Table<const Real>& background_;
  const LeafValues& leaf_values_;
  std::vector<Pending> stack_;
  std::vector<NodeGroups> groups_at_depth_;
  std::vector<std::int32_t> number_, feature_;  // feature_: (n_slots,) at the current leaf
  std::vector<int> n_fails_;                    // (n background groups,) at the current leaf
  std::vector<double> fraction_;                // (n background groups,) at the current leaf
  std::vector<double> value_;                   // (n_groups, n_slots) at the current leaf
  std::vector<std::uint8_t> any_;               // (n_groups,) at the current leaf
};

template <class Real>
Table<const Real> slice_rows(const Table<const Real>& X, std::int64_t first, std::int64_t last) {
  return {X.row(first), last - first, X.width};
}

}  // namespace

template <class Real>
void values_by_cover(const TreesView& trees, const MissingRouting& missing, Table<const Real> X,
                     const Mixture& mixture, int n_threads, Table<double> attribution) {
  fill(attribution.values(), 0.0);
  const std::vector<Paths> paths = find_all_paths(trees, n_threads);
  std::vector<std::vector<double>> chance;
  chance.reserve(paths.size());
  for (const Paths& tree_paths : paths)
    chance.push_back(chances_by_cover(tree_paths, missing.node_weight));
  constexpr auto kWidth = static_cast<std::int64_t>(kLanes);
  with_router(trees.nodes, [&](const auto& router) {
    parallel_for((X.n_rows + kWidth - 1) / kWidth, n_threads, [&](std::int64_t b) {
      const std::int64_t first = b * kWidth;
      const auto width = static_cast<std::size_t>(std::min(kWidth, X.n_rows - first));
      thread_local Scratch scratch;
      std::vector<Lanes> lanes(static_cast<std::size_t>(attribution.width), Lanes{});
      StepCounter counter;
      for (std::size_t t = 0; t < paths.size(); ++t) {
        scratch.reserve(paths[t].size(), mixture.point.size());
        find_matches(
            trees, router, missing, paths[t], X, first, width,
            [&](std::size_t v, std::size_t w) -> double& { return scratch.match[v].at[w]; });
        add_values(trees, paths[t], chance[t], mixture, X.width, scratch, lanes.data(), counter);
      }
      add_lanes(lanes, first, width, 1.0, attribution);
      counter.flush();
    });
  });
}

namespace {

// Adds the values of a tree by products along paths, for each background row in turn: for trees in
// which rows can go both ways, or whose paths have more than kMostSlots features.
template <class Real, class Router>
void add_pairs(const TreesView& trees, const Router& router, const MissingRouting& missing,
               const Paths& paths, const Table<const Real>& X, const Table<const Real>& background,
               const Mixture& mixture, const Table<double>& attribution, StepCounter& counter) {
  thread_local Scratch scratch;
  scratch.reserve(paths.size(), mixture.point.size());
  for (std::int64_t first = 0; first < X.n_rows; first += static_cast<std::int64_t>(kLanes)) {
    const auto width = std::min(kLanes, static_cast<std::size_t>(X.n_rows - first));
    std::vector<Lanes> lanes(static_cast<std::size_t>(attribution.width), Lanes{});
    find_matches(trees, router, missing, paths, X, first, width,
                 [&](std::size_t v, std::size_t w) -> double& { return scratch.match[v].at[w]; });
    for (std::int64_t z = 0; z < background.n_rows; ++z) {
      find_matches(trees, router, missing, paths, background, z, 1,
                   [&](std::size_t v, std::size_t) -> double& { return scratch.chance[v]; });
      add_values(trees, paths, scratch.chance, mixture, X.width, scratch, lanes.data(), counter);
    }
    add_lanes(lanes, first, width, 1.0 / static_cast<double>(background.n_rows), attribution);
  }
}

}  // namespace

template <class Real>
void values_by_background(const TreesView& trees, const MissingRouting& missing,
                          Table<const Real> X, Table<const Real> background, const Mixture& mixture,
                          int n_threads, Table<double> attribution) {
  fill(attribution.values(), 0.0);
  const std::vector<Paths> paths = find_all_paths(trees, n_threads);
  std::vector<std::int32_t> widest;  // of each tree: the largest number of features of a path
  widest.reserve(paths.size());
  for (const Paths& tree_paths : paths) widest.push_back(std::ranges::max(tree_paths.n_slots));
  const std::int32_t most = widest.empty() ? 0 : std::ranges::max(widest);
  const LeafValues leaf_values(mixture, std::min(most, kMostSlots));
  // The values of a row do not depend on the other rows of its block.
  constexpr std::int64_t kMostRows = 2048;
  const std::int64_t n_blocks = std::max<std::int64_t>(std::min<std::int64_t>(n_threads, X.n_rows),
                                                       (X.n_rows + kMostRows - 1) / kMostRows);
  with_router(trees.nodes, [&](const auto& router) {
    parallel_for(n_blocks, n_threads, [&](std::int64_t b) {
      const std::int64_t first = X.n_rows * b / n_blocks, last = X.n_rows * (b + 1) / n_blocks;
      const auto rows = slice_rows(X, first, last);
      const Table<double> block{attribution.row(first), last - first, attribution.width};
      GroupedValues grouped(trees, router, background, leaf_values);
      StepCounter counter;
      for (std::size_t t = 0; t < paths.size(); ++t) {
        if (missing.both_ways.empty() && widest[t] <= kMostSlots)
          grouped.add(paths[t], rows, block, counter);
        else
          add_pairs(trees, router, missing, paths[t], rows, background, mixture, block, counter);
      }
      counter.flush();
    });
  });
}

template void values_by_cover(const TreesView&, const MissingRouting&, Table<const float>,
                              const Mixture&, int, Table<double>);
template void values_by_cover(const TreesView&, const MissingRouting&, Table<const double>,
                              const Mixture&, int, Table<double>);
template void values_by_background(const TreesView&, const MissingRouting&, Table<const float>,
                                   Table<const float>, const Mixture&, int, Table<double>);
template void values_by_background(const TreesView&, const MissingRouting&, Table<const double>,
                                   Table<const double>, const Mixture&, int, Table<double>);

}  // namespace certree
