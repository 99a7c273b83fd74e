#include "explain/interactions.hpp"

#include <unordered_map>

#include "explain/paths.hpp"

namespace certree {
namespace {

// Consecutive bins of a feature of which a leaf accepts the same fraction: 1, or less if rows of
// missing values go both ways.
struct Run {
  std::int32_t begin, end;
  double fraction;
};

// The extent of a box in one feature: the bins that a leaf accepts.
struct Condition {
  std::int32_t feature;
  double probability;               // of the accepted bins
  std::size_t first_run, last_run;  // range of Boxes::runs
};

// A leaf of positive probability.
struct Box {
  std::size_t node;  // number among the nodes of all trees
  double probability;
  std::size_t first, last;  // range of Boxes::conditions, by ascending feature
};

struct Boxes {
  std::vector<Box> boxes;
  std::vector<Condition> conditions;
  std::vector<Run> runs;

  std::span<const Run> runs_of(const Condition& condition) const {
    return {runs.data() + condition.first_run, condition.last_run - condition.first_run};
  }

  void append(const Boxes& others) {
    for (Box box : others.boxes) {
      box.first += conditions.size();
      box.last += conditions.size();
      boxes.push_back(box);
    }
    for (Condition condition : others.conditions) {
      condition.first_run += runs.size();
      condition.last_run += runs.size();
      conditions.push_back(condition);
    }
    runs.insert(runs.end(), others.runs.begin(), others.runs.end());
  }
};

// The probabilities of the bins, by feature, and the number of bins of each feature.
struct BinProbabilities {
  explicit BinProbabilities(const FeatureBins& bins)
      : n_bins(static_cast<std::size_t>(bins.probability.width), 0),
        most(static_cast<std::size_t>(bins.probability.n_rows)),
        probability(n_bins.size() * most) {
    for (std::size_t c = 0; c < most; ++c)
      for (std::size_t j = 0; j < n_bins.size(); ++j) {
        const double q = bins.probability.row(c)[j];
        probability[j * most + c] = q;
        if (q > 0.0) n_bins[j] = c + 1;
      }
  }
  const double* of(std::int32_t j) const {
    return &probability[static_cast<std::size_t>(j) * most];
  }
  std::size_t size(std::int32_t j) const { return n_bins[static_cast<std::size_t>(j)]; }

  std::vector<std::size_t> n_bins;  // (p,) without those of probability 0 at the end
  std::size_t most;                 // C
  std::vector<double> probability;  // (p, C)
};

// Computes the boxes of single trees.
template <class Router>
class BoxFinder {
 public:
  BoxFinder(const TreesView& trees, const Router& router, const MissingRouting& missing,
            const FeatureBins& bins, const BinProbabilities& probabilities)
      : trees_(trees),
        router_(router),
        missing_(missing),
        bins_(bins),
        probabilities_(probabilities) {}

  // Returns the boxes of a tree. The accepted bins of nodes are computed from the root down.
  Boxes find_boxes(const Paths& paths) {
    accepted_.assign(paths.size() * probabilities_.most, 0.0);
    range_.assign(paths.size(), {0, 0});
    Boxes found;
    StepCounter counter;
    for (std::size_t v = 0; v < paths.size(); ++v) {
      if (paths.is_leaf(v)) {
        add_leaf(paths, v, found);
        continue;
      }
      const auto left = static_cast<std::size_t>(paths.left[v]);
      const std::int32_t e = paths.previous[left];
      const auto above = static_cast<std::size_t>(std::max(e, 0));
      const Range bins = e < 0 ? Range{0, probabilities_.size(paths.feature[left])} : range_[above];
      counter.add(static_cast<std::int64_t>(bins.end - bins.begin));
      for (std::size_t c = bins.begin; c < bins.end; ++c) {
        const double accepted_above = e < 0 ? 1.0 : accepted(above)[c];
        if (accepted_above == 0.0) continue;
        visit_reached_children(trees_, router_, missing_, paths, v, bins_.value.row(c),
                               [&](std::size_t child, double fraction) {
                                 accept(left + child, c, accepted_above * fraction);
                               });
      }
    }
    counter.flush();
    return found;
  }

 private:
  struct Range {
    std::size_t begin, end;
  };

  // Fractions (C,) of the bins of a node's feature that the edges of the path to it accept.
  double* accepted(std::size_t v) { return &accepted_[v * probabilities_.most]; }

  void accept(std::size_t v, std::size_t c, double fraction) {
    accepted(v)[c] = fraction;
    if (range_[v].end == 0) range_[v].begin = c;
    range_[v].end = c + 1;
  }

  void add_leaf(const Paths& paths, std::size_t v, Boxes& found) {
    paths.last_nodes(v, nodes_);
    std::ranges::sort(nodes_, {},
                      [&](std::int32_t u) { return paths.feature[static_cast<std::size_t>(u)]; });
    Box box{paths.root + v, 1.0, found.conditions.size(), 0};
    const std::size_t n_runs = found.runs.size();
    for (const std::int32_t u : nodes_) {
      const auto node = static_cast<std::size_t>(u);
      const Condition condition =
          find_condition(paths.feature[node], accepted(node), range_[node], found.runs);
      found.conditions.push_back(condition);
      box.probability *= condition.probability;
    }
    box.last = found.conditions.size();
    if (box.probability > 0.0) {
      found.boxes.push_back(box);
      return;
    }
    // No input reaches this leaf: it gets no box.
    found.conditions.resize(box.first);
    found.runs.resize(n_runs);
  }

  // Returns the condition that accepts these fractions of the bins of a feature, and appends its
  // runs.
  Condition find_condition(std::int32_t feature, const double* fraction, const Range& bins,
                           std::vector<Run>& runs) const {
    Condition condition{feature, 0.0, runs.size(), 0};
    const double* const probability = probabilities_.of(feature);
    for (std::size_t bin = bins.begin; bin < bins.end; ++bin) {
      if (fraction[bin] == 0.0) continue;
      condition.probability += probability[bin] * fraction[bin];
      const auto c = static_cast<std::int32_t>(bin);
      if (runs.size() > condition.first_run && runs.back().end == c &&
          runs.back().fraction == fraction[bin])
        ++runs.back().end;
      else
        runs.push_back({c, c + 1, fraction[bin]});
    }
    condition.last_run = runs.size();
    return condition;
  }

  const TreesView& trees_;
  const Router& router_;
  const MissingRouting& missing_;
  const FeatureBins& bins_;
  const BinProbabilities& probabilities_;
  std::vector<double> accepted_;  // (n_nodes, C), see accepted()
  std::vector<Range> range_;      // bins of each node that are not 0
  std::vector<std::int32_t> nodes_;
};

// Returns the boxes of all trees.
Boxes find_boxes(const TreesView& trees, const MissingRouting& missing, const FeatureBins& bins,
                 const BinProbabilities& probabilities, int n_threads) {
  const std::vector<Paths> paths = find_all_paths(trees, n_threads);
  std::vector<Boxes> by_tree(paths.size());
  with_router(trees.nodes, [&](const auto& router) {
    parallel_for(std::ssize(paths), n_threads, [&](std::int64_t t) {
      BoxFinder finder(trees, router, missing, bins, probabilities);
      by_tree[static_cast<std::size_t>(t)] = finder.find_boxes(paths[static_cast<std::size_t>(t)]);
    });
  });
  Boxes all;
  for (const Boxes& boxes : by_tree) all.append(boxes);
  return all;
}

// -- components of one feature, or of two, as tables over their bins

// A box that contributes to a component, and its conditions on the one or two features.
struct Contribution {
  std::size_t box, first, second;  // the latter two among Boxes::conditions
};

// The contributions of all boxes, grouped by features. Groups are in ascending order of features.
struct Contributions {
  std::vector<std::int32_t> first, second;  // (n_groups,) features of each group
  std::vector<std::size_t> begin;           // (n_groups + 1,)
  std::vector<Contribution> entries;

  std::span<const Contribution> of(std::size_t group) const {
    return {entries.data() + begin[group], begin[group + 1] - begin[group]};
  }
};

// Calls visit(box, first, second) for each pair of conditions of each box, or visit(box, i, i) for
// each single condition.
template <class Visit>
void for_each_pair(const Boxes& all, bool is_single, const Visit& visit) {
  StepCounter counter;
  for (std::size_t b = 0; b < all.boxes.size(); ++b) {
    const Box& box = all.boxes[b];
    for (std::size_t i = box.first; i < box.last; ++i) {
      counter.add(static_cast<std::int64_t>(box.last - i));
      if (is_single)
        visit(b, i, i);
      else
        for (std::size_t j = i + 1; j < box.last; ++j) visit(b, i, j);
    }
  }
  counter.flush();
}

Contributions group_by_features(const Boxes& all, bool is_single) {
  // Groups are first numbered by their first occurrence and counted, then sorted by features.
  std::unordered_map<std::uint64_t, std::uint32_t> number;
  std::vector<std::uint32_t> group;
  std::vector<std::size_t> count;
  for_each_pair(all, is_single, [&](std::size_t, std::size_t i, std::size_t j) {
    const std::uint64_t key = (static_cast<std::uint64_t>(all.conditions[i].feature) << 32) |
                              static_cast<std::uint64_t>(all.conditions[j].feature);
    const auto next = static_cast<std::uint32_t>(count.size());
    const auto [place, is_new] = number.try_emplace(key, next);
    if (is_new) count.push_back(0);
    ++count[place->second];
    group.push_back(place->second);
  });
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted(number.begin(), number.end());
  std::ranges::sort(sorted);
  Contributions grouped;
  grouped.begin.assign(1, 0);
  for (const auto& [key, g] : sorted) {
    grouped.first.push_back(static_cast<std::int32_t>(key >> 32));
    grouped.second.push_back(static_cast<std::int32_t>(key & 0xffffffffu));
    const std::size_t begin = grouped.begin.back();
    // From here on count[g] is where the next contribution of the group is written to.
    grouped.begin.push_back(begin + std::exchange(count[g], begin));
  }
  grouped.entries.resize(group.size());
  std::size_t next = 0;
  for_each_pair(all, is_single, [&](std::size_t b, std::size_t i, std::size_t j) {
    grouped.entries[count[group[next++]]++] = {b, i, j};
  });
  return grouped;
}

// Replaces a table of differences (n + 1, m + 1) by its cumulative sums along both axes. The last
// row and column are not used afterwards.
void sum_differences(std::size_t n, std::size_t m, std::vector<double>& table) {
  for (std::size_t c = 0; c < n; ++c) {
    double* const row = &table[c * (m + 1)];
    for (std::size_t d = 1; d < m; ++d) row[d] += row[d - 1];
    if (c > 0)
      for (std::size_t d = 0; d < m; ++d) row[d] += row[d - (m + 1)];
  }
}

// The component of the analysis of variance that belongs to one feature, or to two.
class Component {
 public:
  Component(const TreesView& trees, const Boxes& all, const BinProbabilities& probabilities)
      : trees_(trees), all_(all), probabilities_(probabilities) {}

  // Computes the component of a group of contributions for output k, and returns its variance. Then
  // value(c, d) is the component in bin c of the first and bin d of the second feature (d = 0 if
  // is_single).
  double compute(const Contributions& contributions, std::size_t group, std::int64_t k,
                 bool is_single) {
    const std::int32_t a = contributions.first[group], b = contributions.second[group];
    n_ = probabilities_.size(a);
    m_ = is_single ? 1 : probabilities_.size(b);
    table_.assign((n_ + 1) * (m_ + 1), 0.0);
    for (const Contribution& contribution : contributions.of(group))
      add(contribution, k, is_single);
    sum_differences(n_, m_, table_);
    const double* const row_probability = probabilities_.of(a);
    if (!is_single) center_rows(probabilities_.of(b));
    center_columns(row_probability);
    double variance = 0.0;
    for (std::size_t c = 0; c < n_; ++c)
      for (std::size_t d = 0; d < m_; ++d) {
        const double x = value(c, d);
        variance += row_probability[c] * (is_single ? 1.0 : probabilities_.of(b)[d]) * x * x;
      }
    return variance;
  }

  double value(std::size_t c, std::size_t d) const { return table_[c * (m_ + 1) + d]; }

 private:
  // Adds the value of a leaf in its accepted bins, times the probability of its other conditions,
  // as differences at the corners of rectangles of bins.
  void add(const Contribution& contribution, std::int64_t k, bool is_single) {
    const Box& box = all_.boxes[contribution.box];
    const Condition& first = all_.conditions[contribution.first];
    const Condition& second = all_.conditions[contribution.second];
    const double others =
        box.probability / (first.probability * (is_single ? 1.0 : second.probability));
    const double leaf_value = trees_.value.row(box.node)[k] * others;
    for (const Run& rows : all_.runs_of(first)) {
      if (is_single) {
        add_rectangle(rows, 0, 1, leaf_value * rows.fraction);
        continue;
      }
      for (const Run& columns : all_.runs_of(second))
        add_rectangle(rows, static_cast<std::size_t>(columns.begin),
                      static_cast<std::size_t>(columns.end),
                      leaf_value * rows.fraction * columns.fraction);
    }
  }
  void add_rectangle(const Run& rows, std::size_t begin, std::size_t end, double added) {
    double* const first = &table_[static_cast<std::size_t>(rows.begin) * (m_ + 1)];
    double* const last = &table_[static_cast<std::size_t>(rows.end) * (m_ + 1)];
    first[begin] += added;
    first[end] -= added;
    last[begin] -= added;
    last[end] += added;
  }

  // Subtract from each row, or column, its mean under the probabilities of the bins.
  void center_rows(const double* probability) {
    for (std::size_t c = 0; c < n_; ++c) {
      double* const row = &table_[c * (m_ + 1)];
      const double mean = std::inner_product(row, row + m_, probability, 0.0);
      for (std::size_t d = 0; d < m_; ++d) row[d] -= mean;
    }
  }
  void center_columns(const double* probability) {
    mean_.assign(m_, 0.0);
    for (std::size_t c = 0; c < n_; ++c)
      for (std::size_t d = 0; d < m_; ++d) mean_[d] += probability[c] * value(c, d);
    for (std::size_t c = 0; c < n_; ++c)
      for (std::size_t d = 0; d < m_; ++d) table_[c * (m_ + 1) + d] -= mean_[d];
  }

  const TreesView& trees_;
  const Boxes& all_;
  const BinProbabilities& probabilities_;
  std::size_t n_ = 0, m_ = 0;  // bins of the two features
  std::vector<double> table_, mean_;
};

// Tasks that share the groups. The number does not depend on n_threads, so that sums are the same
// for any number of threads.
constexpr std::int64_t kTasks = 32;

// Computes the components of all groups. variance: (n_groups,) result, summed over the outputs.
// fitted: (n_draws, n_outputs) the components at the draws are added to it.
void analyse(const TreesView& trees, const Boxes& all, const BinProbabilities& probabilities,
             bool is_single, const Contributions& contributions,
             const Table<const std::int32_t>& draws, int n_threads, std::span<double> variance,
             const Table<double>& fitted) {
  const auto n_groups = static_cast<std::int64_t>(contributions.first.size());
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(kTasks));
  parallel_for(kTasks, n_threads, [&](std::int64_t task) {
    Component component(trees, all, probabilities);
    auto& sum = sums[static_cast<std::size_t>(task)];
    sum.assign(fitted.values().size(), 0.0);
    for (std::int64_t g = task; g < n_groups; g += kTasks) {
      const auto group = static_cast<std::size_t>(g);
      const std::int32_t a = contributions.first[group], b = contributions.second[group];
      variance[group] = 0.0;
      for (std::int64_t k = 0; k < trees.value.width; ++k) {
        count_steps_out_of_line(static_cast<std::int64_t>(
            contributions.of(group).size() +
            probabilities.size(a) * (is_single ? 1 : probabilities.size(b))));
        variance[group] += component.compute(contributions, group, k, is_single);
        for (std::int64_t i = 0; i < draws.n_rows; ++i) {
          const auto c = static_cast<std::size_t>(draws.row(i)[a]);
          const auto d = static_cast<std::size_t>(is_single ? 0 : draws.row(i)[b]);
          sum[static_cast<std::size_t>(i * fitted.width + k)] += component.value(c, d);
        }
      }
    }
  });
  for (const auto& sum : sums)
    for (std::size_t i = 0; i < sum.size(); ++i) fitted.data[i] += sum[i];
}

// -- the whole prediction

// Returns the mean of each output.
std::vector<double> mean_of(const TreesView& trees, const Boxes& all) {
  std::vector<double> mean(static_cast<std::size_t>(trees.value.width), 0.0);
  for (const Box& box : all.boxes)
    for (std::size_t k = 0; k < mean.size(); ++k)
      mean[k] += box.probability * trees.value.row(box.node)[k];
  return mean;
}

// Returns the probability that an input is in both of two boxes, divided by the product of the
// probabilities of the boxes.
double overlap_ratio(const Boxes& all, const BinProbabilities& probabilities, const Box& box,
                     const Box& other) {
  double ratio = 1.0;
  std::size_t i = box.first, j = other.first;
  while (i < box.last && j < other.last) {
    const Condition &a = all.conditions[i], &b = all.conditions[j];
    if (a.feature != b.feature) {
      a.feature < b.feature ? ++i : ++j;
      continue;
    }
    const double* const probability = probabilities.of(a.feature);
    double both = 0.0;
    for (const Run& x : all.runs_of(a))
      for (const Run& y : all.runs_of(b))
        for (std::int32_t c = std::max(x.begin, y.begin); c < std::min(x.end, y.end); ++c)
          both += probability[c] * x.fraction * y.fraction;
    if (both == 0.0) return 0.0;
    ratio *= both / (a.probability * b.probability);
    ++i, ++j;
  }
  return ratio;
}

// Returns the variance of the prediction, summed over the outputs.
double total_variance(const TreesView& trees, const Boxes& all,
                      const BinProbabilities& probabilities, int n_threads) {
  std::vector<double> sums(all.boxes.size());
  parallel_for(std::ssize(sums), n_threads, [&](std::int64_t task) {
    const auto b = static_cast<std::size_t>(task);
    const Box& box = all.boxes[b];
    count_steps_out_of_line(16 * static_cast<std::int64_t>(b + 1));
    double sum = 0.0;
    for (std::size_t a = 0; a <= b; ++a) {
      const Box& other = all.boxes[a];
      double products = 0.0;
      for (std::int64_t k = 0; k < trees.value.width; ++k)
        products += trees.value.row(box.node)[k] * trees.value.row(other.node)[k];
      // Covariance of the indicators, over their probabilities; counted for both orders of a and b.
      const double covariance = overlap_ratio(all, probabilities, box, other) - 1.0;
      sum += (a < b ? 2.0 : 1.0) * products * other.probability * covariance;
    }
    sums[b] = box.probability * sum;
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace

Interactions interactions(const TreesView& trees, const MissingRouting& missing,
                          const FeatureBins& bins, Table<const std::int32_t> draws,
                          bool wants_total, int n_threads, std::span<double> single,
                          Table<double> fitted) {
  const BinProbabilities probabilities(bins);
  const Boxes all = find_boxes(trees, missing, bins, probabilities, n_threads);
  const std::vector<double> mean = mean_of(trees, all);
  for (std::int64_t i = 0; i < fitted.n_rows; ++i) std::ranges::copy(mean, fitted.row(i));
  const Contributions singles = group_by_features(all, true);
  std::vector<double> variance(singles.first.size());
  analyse(trees, all, probabilities, true, singles, draws, n_threads, variance, fitted);
  fill(single, 0.0);
  for (std::size_t g = 0; g < variance.size(); ++g)
    single[static_cast<std::size_t>(singles.first[g])] = variance[g];
  Contributions pairs = group_by_features(all, false);
  Interactions result;
  result.variance.resize(pairs.first.size());
  analyse(trees, all, probabilities, false, pairs, draws, n_threads, result.variance, fitted);
  result.first = std::move(pairs.first);
  result.second = std::move(pairs.second);
  if (wants_total) result.total = total_variance(trees, all, probabilities, n_threads);
  return result;
}

}  // namespace certree
