#include "explain/shapley.hpp"

#include "explain/paths.hpp"

namespace certree {
namespace {

// So many rows go through a tree side by side.
constexpr std::size_t kLanes = 8;
// A number of each of them.
struct Lanes {
  std::array<double, kLanes> at;
};

// -- one tree, by products along its paths

// Products and sums of one tree, for each of its nodes and points of the mixture.
struct Scratch {
  std::vector<Lanes> holds, product, inverse, sum;
  std::vector<double> chance;

  void reserve(std::size_t m, std::size_t n_points) {
    if (holds.size() < m) {
      holds.resize(m);
      chance.resize(m);
    }
    if (product.size() < m * n_points)
      for (auto* column : {&product, &inverse, &sum}) column->resize(m * n_points);
  }
};

// Products of mixtures along paths; inverse has 1 / mixture of the feature that leads to a node.
CERTREE_SIMD_CLONES void multiply_down(const Paths& paths, std::span<const double> chance,
                                       std::span<const Lanes> holds, std::span<const double> point,
                                       Lanes* product, Lanes* inverse) noexcept {
  const std::size_t n_points = point.size();
  for (std::size_t q = 0; q < n_points; ++q) product[q].at.fill(1.0);
  for (std::size_t v = 1; v < paths.size(); ++v) {
    const double unknown = chance[v];
    const Lanes known = holds[v];
    const Lanes* const above = product + static_cast<std::size_t>(paths.parent[v]) * n_points;
    const std::int32_t e = paths.before[v];
    const Lanes* const without = e < 0 ? nullptr : inverse + static_cast<std::size_t>(e) * n_points;
    for (std::size_t q = 0; q < n_points; ++q) {
      Lanes mixed, before;
      for (std::size_t w = 0; w < kLanes; ++w)
        mixed.at[w] = unknown + point[q] * (known.at[w] - unknown);
      // Where it is 0 no row arrives, known or not, and nothing below changes anything.
      for (std::size_t w = 0; w < kLanes; ++w) {
        const double one = 1.0 / mixed.at[w];
        before.at[w] = mixed.at[w] > 0.0 ? one : 0.0;
      }
      inverse[v * n_points + q] = before;
      for (std::size_t w = 0; w < kLanes; ++w) mixed.at[w] *= above[q].at[w];
      if (without)
        for (std::size_t w = 0; w < kLanes; ++w) mixed.at[w] *= without[q].at[w];
      product[v * n_points + q] = mixed;
    }
  }
}

// Adds what the edge to node v changes, by sums over the leaves below.
CERTREE_INLINE void add_change(std::span<const double> chance, std::span<const Lanes> holds,
                               std::int32_t before, std::size_t v, std::size_t n_points,
                               const Lanes* inverse, const Lanes* sum, Lanes& part) {
  Lanes own, above{};
  for (std::size_t w = 0; w < kLanes; ++w) own.at[w] = holds[v].at[w] - chance[v];
  const std::size_t e = before < 0 ? 0 : static_cast<std::size_t>(before);
  if (before >= 0)
    for (std::size_t w = 0; w < kLanes; ++w) above.at[w] = holds[e].at[w] - chance[e];
  for (std::size_t q = 0; q < n_points; ++q) {
    const Lanes &here = inverse[v * n_points + q], &there = inverse[e * n_points + q];
    const Lanes& below = sum[v * n_points + q];
    for (std::size_t w = 0; w < kLanes; ++w)
      part.at[w] += (own.at[w] * here.at[w] - above.at[w] * there.at[w]) * below.at[w];
  }
}

// Adds the values of all features for one output, (p,), by sums of what leaves say times products.
CERTREE_SIMD_CLONES void sum_up(const Paths& paths, std::span<const double> chance,
                                std::span<const Lanes> holds, std::span<const double> weight,
                                const double* value, std::int64_t n_outputs, const Lanes* product,
                                const Lanes* inverse, Lanes* sum, Lanes* part) noexcept {
  const std::size_t n_points = weight.size();
  for (std::size_t v = paths.size(); v-- > 0;) {
    Lanes* const own = sum + v * n_points;
    if (paths.is_leaf(v)) {
      const double said = value[static_cast<std::int64_t>(paths.root + v) * n_outputs];
      for (std::size_t q = 0; q < n_points; ++q)
        for (std::size_t w = 0; w < kLanes; ++w)
          own[q].at[w] = said * weight[q] * product[v * n_points + q].at[w];
      continue;
    }
    const auto left = static_cast<std::size_t>(paths.left[v]);
    Lanes& feature = part[paths.compared[left]];
    for (const std::size_t child : {left, left + 1})
      add_change(chance, holds, paths.before[child], child, n_points, inverse, sum, feature);
    const Lanes *const first = sum + left * n_points, *const second = first + n_points;
    for (std::size_t q = 0; q < n_points; ++q)
      for (std::size_t w = 0; w < kLanes; ++w) own[q].at[w] = first[q].at[w] + second[q].at[w];
  }
}

// Which parts of some rows hold along the paths of a tree, by feature; put(v, w) is where the part
// of row w at node v stands.
template <class Real, class Steps, class Put>
void follow(const TreesView& trees, const Steps& steps, const MissingRouting& missing,
            const Paths& paths, const Table<const Real>& X, std::int64_t first, std::size_t width,
            const Put& put) {
  for (std::size_t w = 0; w < width; ++w) put(0, w) = 1.0;
  for (std::size_t u = 0; u < paths.size(); ++u) {
    if (paths.is_leaf(u)) continue;
    const auto left = static_cast<std::size_t>(paths.left[u]);
    const std::int32_t e = paths.before[left];
    for (std::size_t w = 0; w < width; ++w) {
      const double above = e < 0 ? 1.0 : put(static_cast<std::size_t>(e), w);
      put(left, w) = put(left + 1, w) = 0.0;
      go_from(trees, steps, branches, paths, u, X.row(first + static_cast<std::int64_t>(w)),
              [&](std::size_t side, double part) { put(left + side, w) = part * above; });
    }
  }
}

// The chances of paths of a tree by the rows of its nodes.
std::vector<double> chances_by_cover(const Paths& paths, std::span<const double> rows) {
  std::vector<double> chance(paths.size(), 1.0);
  for (std::size_t u = 0; u < paths.size(); ++u) {
    if (paths.is_leaf(u)) continue;
    const auto left = static_cast<std::size_t>(paths.left[u]);
    const std::int32_t e = paths.before[left];
    const double above = e < 0 ? 1.0 : chance[static_cast<std::size_t>(e)];
    const double* const own = rows.data() + paths.root + left;
    // Halves: the sum of both may be beyond float64.
    const double first = own[0] / 2, whole = first + own[1] / 2;
    const double share = whole > 0.0 ? first / whole : 0.5;
    chance[left] = above * share;
    chance[left + 1] = above * (1.0 - share);
  }
  return chance;
}

// Adds to part, (n_outputs * p,), the values of a tree for the rows of which `holds` speaks.
void add_values(const TreesView& trees, const Paths& paths, std::span<const double> chance,
                const Mixture& mixture, std::int64_t p, Scratch& scratch, Lanes* part,
                StepCounter& counter) {
  const auto work = static_cast<std::int64_t>(paths.size() * mixture.point.size() * kLanes);
  counter.add(work * (1 + trees.value.width));
  multiply_down(paths, chance, scratch.holds, mixture.point, scratch.product.data(),
                scratch.inverse.data());
  for (std::int64_t k = 0; k < trees.value.width; ++k)
    sum_up(paths, chance, scratch.holds, mixture.weight, trees.value.data + k, trees.value.width,
           scratch.product.data(), scratch.inverse.data(), scratch.sum.data(), part + k * p);
}

// Adds the values of lanes to the rows that they stand for.
void add_lanes(const std::vector<Lanes>& lanes, std::int64_t first, std::size_t width, double share,
               const Table<double>& part) {
  for (std::size_t w = 0; w < width; ++w) {
    double* const own = part.row(first + static_cast<std::int64_t>(w));
    for (std::size_t j = 0; j < lanes.size(); ++j) own[j] += share * lanes[j].at[w];
  }
}

// -- one tree, by groups of rows for which the same features of a path hold

// Rows by which features of a path do not hold for them.
struct Groups {
  std::vector<std::int32_t> group;   // (n_rows,) number of the group of each row
  std::vector<std::uint64_t> fails;  // (n_groups,) a bit for each feature of the path

  void start(std::size_t n_rows) {
    group.assign(n_rows, 0);
    fails.assign(1, 0);
  }

  // Divides the groups of the parent by whether rows go on to a child.
  template <class GoesOn>
  void divide(const Groups& above, std::int32_t slot, std::vector<std::int32_t>& number,
              const GoesOn& goes_on) {
    number.assign(2 * above.fails.size(), -1);
    group.resize(above.group.size());
    fails.clear();
    const std::uint64_t bit = std::uint64_t{1} << slot;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto g = static_cast<std::size_t>(above.group[i]);
      const bool failed = !goes_on(static_cast<std::int64_t>(i)) || (above.fails[g] & bit) != 0;
      std::int32_t& own = number[2 * g + static_cast<std::size_t>(failed)];
      if (own < 0) {
        own = static_cast<std::int32_t>(fails.size());
        fails.push_back(failed ? above.fails[g] | bit : above.fails[g]);
      }
      group[i] = own;
    }
  }
};

// The most features of a path that have a bit each.
constexpr std::int32_t kMostSlots = 64;

// change[s][u]: what knowing one of s features that hold for the row alone changes, where u others
// hold for the background alone; s >= 1. Those u change -change[u][s].
class Changes {
 public:
  Changes(const Mixture& mixture, std::int32_t n_slots)
      : width_(static_cast<std::size_t>(n_slots) + 1), change_(width_ * width_, 0.0) {
    for (std::size_t q = 0; q < mixture.point.size(); ++q) {
      double known = mixture.weight[q];
      for (std::size_t s = 1; s < width_; ++s, known *= mixture.point[q]) {
        double both = known;
        for (std::size_t u = 0; u < width_; ++u, both *= 1.0 - mixture.point[q])
          change_[s * width_ + u] += both;
      }
    }
  }
  double at(int s, int u) const {
    return change_[static_cast<std::size_t>(s) * width_ + static_cast<std::size_t>(u)];
  }

 private:
  std::size_t width_;
  std::vector<double> change_;
};

template <class Real, class Steps>
class Grouping {
 public:
  Grouping(const TreesView& trees, const Steps& steps, const Table<const Real>& background,
           const Changes& changes)
      : trees_(trees), steps_(steps), background_(background), changes_(changes) {}

  // Adds the values of a tree for some rows, which no leaf shares.
  void add(const Paths& paths, const Table<const Real>& X, const Table<double>& part,
           StepCounter& counter) {
    waiting_.assign(1, {0, 0});
    while (!waiting_.empty()) {
      const auto [v, depth] = waiting_.back();
      waiting_.pop_back();
      if (levels_.size() <= depth) levels_.resize(depth + 1);
      counter.add(X.n_rows + background_.n_rows);
      if (v == 0) {
        levels_[0].rows.start(static_cast<std::size_t>(X.n_rows));
        levels_[0].others.start(static_cast<std::size_t>(background_.n_rows));
      } else {
        divide(paths, v, X, levels_[depth - 1].rows, levels_[depth].rows);
        divide(paths, v, background_, levels_[depth - 1].others, levels_[depth].others);
      }
      if (paths.is_leaf(v)) {
        add_leaf(paths, v, levels_[depth], part, counter);
        continue;
      }
      const auto left = static_cast<std::size_t>(paths.left[v]);
      waiting_.push_back({left + 1, depth + 1});
      waiting_.push_back({left, depth + 1});
    }
  }

 private:
  struct Level {
    Groups rows, others;
  };

  void divide(const Paths& paths, std::size_t v, const Table<const Real>& X, const Groups& above,
              Groups& own) {
    const std::size_t u = paths.root + static_cast<std::size_t>(paths.parent[v]);
    const Step step(trees_.nodes, u);
    const auto child = static_cast<std::int32_t>(paths.root + v);
    own.divide(above, paths.slot[v], number_, [&](std::int64_t i) {
      return steps_.next(step, static_cast<std::int32_t>(u), X.row(i)) == child;
    });
  }

  // How many rows of the background each group has, and of how many features it is none.
  void count(const Groups& others) {
    share_.assign(others.fails.size(), 0.0);
    for (const std::int32_t g : others.group) share_[static_cast<std::size_t>(g)] += 1.0;
    n_fails_.clear();
    for (const std::uint64_t fails : others.fails) n_fails_.push_back(std::popcount(fails));
    for (double& share : share_) share /= static_cast<double>(background_.n_rows);
  }

  // change: (n_slots,) of a group of rows; whether any is not 0.
  bool fill_changes(std::uint64_t fails, const Groups& others, double* change) const {
    const int u = std::popcount(fails);
    double alone = 0.0;
    bool any = false;
    for (std::size_t h = 0; h < others.fails.size(); ++h) {
      if (fails & others.fails[h]) continue;
      any = true;
      const int s = n_fails_[h];
      alone += share_[h] * changes_.at(u, s);
      const double own = share_[h] * changes_.at(s, u);
      for (std::uint64_t rest = others.fails[h]; rest != 0; rest &= rest - 1)
        change[std::countr_zero(rest)] += own;
    }
    for (std::uint64_t rest = fails; rest != 0; rest &= rest - 1)
      change[std::countr_zero(rest)] -= alone;
    return any;
  }

  void add_leaf(const Paths& paths, std::size_t v, const Level& level, const Table<double>& part,
                StepCounter& counter) {
    const auto n_slots = static_cast<std::size_t>(paths.n_slots[v]);
    if (n_slots == 0) return;
    count(level.others);
    paths.last_nodes(v, feature_);
    for (std::int32_t& one : feature_) one = paths.compared[static_cast<std::size_t>(one)];
    const std::size_t n_groups = level.rows.fails.size();
    counter.add(static_cast<std::int64_t>(n_groups * level.others.fails.size()));
    change_.assign(n_groups * n_slots, 0.0);
    any_.resize(n_groups);
    for (std::size_t g = 0; g < n_groups; ++g)
      any_[g] = fill_changes(level.rows.fails[g], level.others, &change_[g * n_slots]);
    const std::int64_t n_outputs = trees_.value.width, p = part.width / n_outputs;
    const double* const said = trees_.value.row(paths.root + v);
    for (std::int64_t i = 0; i < part.n_rows; ++i) {
      const auto g = static_cast<std::size_t>(level.rows.group[static_cast<std::size_t>(i)]);
      if (!any_[g]) continue;
      const double* const change = &change_[g * n_slots];
      for (std::int64_t k = 0; k < n_outputs; ++k) {
        double* const own = part.row(i) + k * p;
        for (std::size_t slot = 0; slot < n_slots; ++slot)
          own[feature_[slot]] += said[k] * change[slot];
      }
    }
  }

  struct Waiting {
    std::size_t node, depth;
  };

  const TreesView& trees_;
  const Steps& steps_;
  const Table<const Real>& background_;
  const Changes& changes_;
  std::vector<Waiting> waiting_;
  std::vector<Level> levels_;
  std::vector<std::int32_t> number_, feature_;
  std::vector<int> n_fails_;
  std::vector<double> share_, change_;
  std::vector<std::uint8_t> any_;
};

template <class Real>
Table<const Real> some_rows(const Table<const Real>& X, std::int64_t first, std::int64_t last) {
  return {X.row(first), last - first, X.width};
}

}  // namespace

template <class Real>
void values_by_cover(const TreesView& trees, const MissingRouting& missing, Table<const Real> X,
                     const Mixture& mixture, int n_threads, Table<double> part) {
  fill(part.values(), 0.0);
  const std::vector<Paths> paths = paths_of_all(trees, n_threads);
  std::vector<std::vector<double>> chance;
  chance.reserve(paths.size());
  for (const Paths& one : paths) chance.push_back(chances_by_cover(one, branches.rows));
  constexpr auto kWidth = static_cast<std::int64_t>(kLanes);
  with_router(trees.nodes, [&](const auto& steps) {
    parallel_for((X.n_rows + kWidth - 1) / kWidth, n_threads, [&](std::int64_t b) {
      const std::int64_t first = b * kWidth;
      const auto width = static_cast<std::size_t>(std::min(kWidth, X.n_rows - first));
      thread_local Scratch scratch;
      std::vector<Lanes> lanes(static_cast<std::size_t>(part.width), Lanes{});
      StepCounter counter;
      for (std::size_t t = 0; t < paths.size(); ++t) {
        scratch.reserve(paths[t].size(), mixture.point.size());
        follow(trees, steps, branches, paths[t], X, first, width,
               [&](std::size_t v, std::size_t w) -> double& { return scratch.holds[v].at[w]; });
        add_values(trees, paths[t], chance[t], mixture, X.width, scratch, lanes.data(), counter);
      }
      add_lanes(lanes, first, width, 1.0, part);
      counter.flush();
    });
  });
}

namespace {

// The values of a tree by each row of the background in turn, where rows go both ways, or paths
// have more features than a word has bits.
template <class Real, class Steps>
void add_pairs(const TreesView& trees, const Steps& steps, const MissingRouting& missing,
               const Paths& paths, const Table<const Real>& X, const Table<const Real>& background,
               const Mixture& mixture, const Table<double>& part, StepCounter& counter) {
  thread_local Scratch scratch;
  scratch.reserve(paths.size(), mixture.point.size());
  for (std::int64_t first = 0; first < X.n_rows; first += static_cast<std::int64_t>(kLanes)) {
    const auto width = std::min(kLanes, static_cast<std::size_t>(X.n_rows - first));
    std::vector<Lanes> lanes(static_cast<std::size_t>(part.width), Lanes{});
    follow(trees, steps, branches, paths, X, first, width,
           [&](std::size_t v, std::size_t w) -> double& { return scratch.holds[v].at[w]; });
    for (std::int64_t z = 0; z < background.n_rows; ++z) {
      follow(trees, steps, branches, paths, background, z, 1,
             [&](std::size_t v, std::size_t) -> double& { return scratch.chance[v]; });
      add_values(trees, paths, scratch.chance, mixture, X.width, scratch, lanes.data(), counter);
    }
    add_lanes(lanes, first, width, 1.0 / static_cast<double>(background.n_rows), part);
  }
}

}  // namespace

template <class Real>
void values_by_background(const TreesView& trees, const MissingRouting& missing,
                          Table<const Real> X, Table<const Real> background, const Mixture& mixture,
                          int n_threads, Table<double> part) {
  fill(part.values(), 0.0);
  const std::vector<Paths> paths = paths_of_all(trees, n_threads);
  std::vector<std::int32_t> widest;  // features of the longest path of each tree
  widest.reserve(paths.size());
  for (const Paths& one : paths) widest.push_back(std::ranges::max(one.n_slots));
  const std::int32_t most = widest.empty() ? 0 : std::ranges::max(widest);
  const Changes changes(mixture, std::min(most, kMostSlots));
  // A row's values do not depend on who is in its block.
  constexpr std::int64_t kMostRows = 2048;
  const std::int64_t n_blocks = std::max<std::int64_t>(std::min<std::int64_t>(n_threads, X.n_rows),
                                                       (X.n_rows + kMostRows - 1) / kMostRows);
  with_router(trees.nodes, [&](const auto& steps) {
    parallel_for(n_blocks, n_threads, [&](std::int64_t b) {
      const std::int64_t first = X.n_rows * b / n_blocks, last = X.n_rows * (b + 1) / n_blocks;
      const auto rows = some_rows(X, first, last);
      const Table<double> own{part.row(first), last - first, part.width};
      Grouping grouping(trees, steps, background, changes);
      StepCounter counter;
      for (std::size_t t = 0; t < paths.size(); ++t) {
        if (branches.both.empty() && widest[t] <= kMostSlots)
          grouping.add(paths[t], rows, own, counter);
        else
          add_pairs(trees, steps, branches, paths[t], rows, background, mixture, own, counter);
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
