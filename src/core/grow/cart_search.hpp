// The best split of a node of the greedy grower.
//
// Missing values stand at the end of a list. A sweep is made with them in the right child and, if
// there are any, one with them in the left.
//
// Features of categories need no order: the sums of each category are taken in one pass over the
// rows of a node, and the categories, the missing value among them, are divided in two, if they
// differ by more than chance explains.
#pragma once

#include <functional>

#include "grow/cart_counts.hpp"
#include "grow/cart_decide.hpp"
#include "grow/chance.hpp"

namespace certree {
namespace {

// Whether the cost of a child can be computed from sums of its groups, not only from its rows.
template <class Sweep>
concept TakesGroups = requires(Sweep sweep, const double* sums) { sweep.take(sums, 1.0); };

// What the search of a node works with; it serves one node after the other.
template <class Sweep>
struct Workspace {
  Sweep sweep;
  Groups groups;
  Divider divider;
  std::vector<double> table;  // sums by code; zero between searches

  template <class Rows>
  explicit Workspace(const Rows& rows)
      : sweep(rows.y, rows.weight, rows.counts_rows, rows.n_classes),
        groups(sweep.width(), sweep.n_sums()),
        divider(sweep.width(), sweep.n_sums()) {}
};

// What finds the best split of a node, whatever makes a split good: all but this is one code for
// all.
class AnySearch {
 public:
  virtual ~AnySearch() = default;
  virtual SplitInfo best(const CartNode& node) const = 0;
};

template <class Rows, class Sweep>
class Search : public AnySearch {
 public:
  // precedence: (p,) the order in which nodes compare all features, so that of equal splits the
  // first wins: features whose best split of the root is better come first, as they are more likely
  // to mean something in small nodes, where many splits are equal. Written while the root is
  // searched, before there are other nodes.
  Search(const Rows& rows, const Decisions<Rows>& decide, const Greedy& greedy,
         std::vector<std::int64_t>& precedence, int n_threads)
      : rows_(rows),
        decide_(decide),
        greedy_(greedy),
        precedence_(precedence),
        n_threads_(n_threads),
        workspace_(rows),
        counts_(rows, workspace_.sweep.width()) {}

  // The best split of the node: of equal ones, that of the feature with precedence, then the
  // lowest.
  SplitInfo best(const CartNode& node) const override {
    if (node.is_leaf) return SplitInfo();
    const bool all = greedy_.max_features >= rows_.X.width();
    SplitInfo winner = all ? best_of_all(node) : best_of(node, decide_.drawn_features(node));
    winner.heuristic |= greedy_.random_splits || !all;
    if (greedy_.min_gain > 0.0 && winner.gain < greedy_.min_gain) return SplitInfo();
    return winner;
  }

 private:
  SplitInfo best_of_all(const CartNode& node) const {
    if (node.depth > 0 || greedy_.random_splits) return best_of(node, precedence_);
    std::vector<double> worth(precedence_.size());
    SplitInfo winner = best_of(node, precedence_, &worth);
    std::ranges::stable_sort(precedence_, std::greater(),
                             [&](std::int64_t j) { return worth[static_cast<std::size_t>(j)]; });
    return winner;
  }

  // worth: if not null, the value of each feature's best split, -HUGE_VAL if there is none.
  SplitInfo best_of(const CartNode& node, const std::vector<std::int64_t>& features,
                    std::vector<double>* worth = nullptr) const {
    count_steps(features.size());
    const auto members = rows_.members(node);
    counts_.count(node, workspace_.sweep, n_threads_);
    SplitInfo winner;
    bool heuristic = false;
    if (worth) std::ranges::fill(*worth, -HUGE_VAL);
    const auto challenge = [&](std::int64_t j, SplitInfo&& split_info) {
      heuristic |= split_info.heuristic;
      if (worth) (*worth)[static_cast<std::size_t>(j)] = split_info.value;
      if (split_info.is_made() && split_info.value > winner.value) winner = std::move(split_info);
    };
    if (threads_for(node, n_threads_) > 1) {
      std::vector<SplitInfo> split_infos(features.size());
      parallel_for(static_cast<std::int64_t>(split_infos.size()), n_threads_, [&](std::int64_t i) {
        Workspace<Sweep> workspace(rows_);
        workspace.sweep.start(members);
        const auto at = static_cast<std::size_t>(i);
        if (varies(node, features[at]))
          split_infos[at] = best_of_feature(workspace, node, features[at], -HUGE_VAL);
      });
      for (std::size_t i = 0; i < split_infos.size(); ++i)
        challenge(features[i], std::move(split_infos[i]));
    } else {
      workspace_.sweep.start(members);
      for (const std::int64_t j : features)
        if (varies(node, j))
          challenge(j, best_of_feature(workspace_, node, j, worth ? -HUGE_VAL : winner.value));
    }
    winner.heuristic = heuristic;
    return winner;
  }

  bool varies(const CartNode& node, std::int64_t j) const {
    return rows_.few->holds(j) ? counts_.varies(j) : rows_.varies(node, j);
  }

  // The best split by a feature that varies whose value is above `to_beat`; not made if there is
  // none.
  SplitInfo best_of_feature(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j,
                            double to_beat) const {
    SplitInfo split_info;
    split_info.value = to_beat;
    if (rows_.few->holds(j)) {
      if constexpr (TakesGroups<Sweep>) sweep_values(workspace, node, j, split_info);
    } else if (rows_.features->is_categorical(j)) {
      sum_categories(workspace, node, j);
      if (greedy_.random_splits)
        draw_set(workspace, node, j, split_info);
      else
        divide_set(workspace, node, j, split_info);
    } else {
      const Line line(rows_.list(j, node));
      if (greedy_.random_splits)
        draw_threshold(workspace.sweep, node, j, line, split_info);
      else
        sweep_along(workspace.sweep, node, j, line, split_info);
    }
    if (split_info.is_made()) split_info.gain = workspace.sweep.decrease(split_info.value);
    return split_info;
  }

  // Takes the state of the sweep as the split if it is allowed and better.
  bool consider(const Sweep& sweep, const CartNode& node, std::int64_t j,
                SplitInfo& split_info) const {
    const double value = sweep.value();
    if (!(value > split_info.value && decide_.is_allowed(sweep, node, j))) return false;
    split_info.value = value;
    split_info.feature = j;
    if (!greedy_.monotonic.empty())
      split_info.middle = (sweep.mean_left() + sweep.mean_right()) / 2.0;
    return true;
  }

  // -- numbers

  // The rows of a node in the order of a feature: [first, last) have a value, [last, end) miss it.
  struct Line {
    const RankedRow *first, *last, *end;
    explicit Line(std::span<const RankedRow> list)
        : first(list.data()), last(first + list.size()), end(last) {
      while (last > first && last[-1].rank == kMissing) --last;
    }
  };

  static void take(Sweep& sweep, const RankedRow* first, const RankedRow* last) {
    for (const auto part : chunks(first, last))
      for (const RankedRow& e : part) sweep.take(e.row);
  }

  void sweep_along(Sweep& sweep, const CartNode& node, std::int64_t j, const Line& line,
                   SplitInfo& split_info) const {
    const auto [first, last, end] = line;
    const RankedRow* edge = nullptr;  // the first row right of the split
    const auto compare = [&](const RankedRow* e, bool missing_left) {
      if (!consider(sweep, node, j, split_info)) return;
      edge = e;
      split_info.missing_left = missing_left;
    };
    sweep.restart();
    for (const auto part : chunks(first, last - 1))
      for (const RankedRow *e = part.data(), *next = e + part.size(); e < next; ++e) {
        sweep.take(e->row);
        if (e->rank != e[1].rank) compare(e + 1, false);
      }
    if (last != end) {
      sweep.take(last[-1].row);
      compare(last, false);
      sweep.restart();
      take(sweep, last, end);
      for (const auto part : chunks(first, last - 1))
        for (const RankedRow *e = part.data(), *next = e + part.size(); e < next; ++e) {
          sweep.take(e->row);
          if (e->rank != e[1].rank) compare(e + 1, true);
        }
    }
    if (!edge) return;
    split_info.n_left = edge - first;
    const double low = rows_.x(edge[-1], j);
    split_info.threshold = edge == last ? low : between(low, rows_.x(*edge, j));
  }

  // The same where rows are counted by value; none is missing.
  void sweep_values(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j,
                    SplitInfo& split_info) const {
    Groups& groups = workspace.groups;
    const std::vector<double>& values = rows_.few->feature(j).values;
    counts_.collect(j, groups);
    workspace.sweep.restart();
    for (std::size_t right = 1; right < groups.size(); ++right) {
      workspace.sweep.take(groups.sums(right - 1), 1.0);
      if (consider(workspace.sweep, node, j, split_info))
        split_info.threshold = between(values[groups.code(right - 1)], values[groups.code(right)]);
    }
  }

  // One threshold between the smallest and the largest value; where there is but one value, the
  // threshold separates it from the missing ones.
  void draw_threshold(Sweep& sweep, const CartNode& node, std::int64_t j, const Line& line,
                      SplitInfo& split_info) const {
    const auto [first, last, end] = line;
    const double low = rows_.x(*first, j), high = rows_.x(last[-1], j);
    Random random(key_of(node.key, static_cast<std::uint64_t>(greedy_.feature_order.of(j))));
    const double fraction = random.uniform();
    const double drawn = low * (1.0 - fraction) + high * fraction;
    const double threshold = drawn >= low && drawn < high ? drawn : low;
    const RankedRow* const edge = std::partition_point(
        first, last, [&](const RankedRow& e) { return rows_.x(e, j) <= threshold; });
    sweep.restart();
    take(sweep, first, edge);
    const auto compare = [&](bool missing_left) {
      if (!consider(sweep, node, j, split_info)) return;
      split_info.n_left = edge - first;
      split_info.threshold = threshold;
      split_info.missing_left = missing_left;
    };
    compare(false);
    if (last == end || edge == last) return;
    take(sweep, last, end);
    compare(true);
  }

  // -- categories

  void sum_categories(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j) const {
    const std::uint32_t* const codes = rows_.codes_of(j);
    const auto members = rows_.members(node);
    const std::size_t width = workspace.sweep.n_sums();
    const std::size_t n_codes = rows_.features->missing_code(j) + 1;
    const std::size_t size = checked_size(n_codes, width);
    if (workspace.table.size() < size) workspace.table.resize(size);
    double* const table = workspace.table.data();
    for (const auto part : chunks(members))
      for (const RankedRow& e : part) workspace.sweep.add(table + codes[e.row] * width, e.row);
    workspace.groups.clear();
    const auto collect = [&](std::uint32_t code) {
      double* const sums = table + code * width;
      if (sums[0] <= 0.0) return;
      workspace.groups.add(code, sums);
      std::fill(sums, sums + width, 0.0);
    };
    if (n_codes <= members.size()) {
      for (const std::size_t code : indices(n_codes, width))
        collect(static_cast<std::uint32_t>(code));
      return;
    }
    thread_local std::vector<std::uint32_t> seen;
    seen.clear();
    for (const RankedRow& e : members) seen.push_back(codes[e.row]);
    with_interrupt_checks(seen.size(), std::less<>(),
                          [&](const auto& f) { std::ranges::sort(seen, f); });
    for (const auto part : chunks(std::span(seen)))
      for (const std::uint32_t code : part) collect(code);
  }

  void divide_set(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j,
                  SplitInfo& split_info) const {
    if (!is_telling(workspace.groups, node)) return;
    if constexpr (TakesGroups<Sweep>) {
      Sweep& sweep = workspace.sweep;
      const auto allowed = [&] { return decide_.is_allowed(sweep, node, j); };
      const bool found =
          workspace.divider.search(sweep, workspace.groups, allowed, split_info.value);
      // Among the divisions that are allowed the best need not be a prefix.
      split_info.heuristic = workspace.divider.heuristic() || decide_.forbids();
      if constexpr (requires(const double* sums) { sweep.refuses(sums); })
        for (std::size_t g = 0; g < workspace.groups.size(); ++g)
          split_info.heuristic |= sweep.refuses(workspace.groups.sums(g));
      if (!found) return;
      split_info.feature = j;
      store_sets(workspace.groups, workspace.divider.left(), split_info);
    } else {
      sweep_along_means(workspace, node, j, split_info);
    }
  }

  // Every prefix of the categories in the order of their means, row by row; the best division need
  // not be one of them.
  void sweep_along_means(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j,
                         SplitInfo& split_info) const {
    Sweep& sweep = workspace.sweep;
    const Groups& groups = workspace.groups;
    const std::uint32_t* const codes = rows_.codes_of(j);
    thread_local std::vector<double> mean;  // by code
    if (mean.size() <= rows_.features->missing_code(j))
      mean.resize(rows_.features->missing_code(j) + 1);
    for (std::size_t g = 0; g < groups.size(); ++g)
      mean[groups.code(g)] = sweep.score(groups.sums(g));
    std::vector<std::uint32_t> order;
    for (const auto part : chunks(rows_.members(node)))
      for (const RankedRow& e : part) order.push_back(e.row);
    const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
      const std::uint32_t k = codes[a], l = codes[b];
      return mean[k] < mean[l] || (mean[k] == mean[l] && (k < l || (k == l && a < b)));
    };
    with_interrupt_checks(order.size(), is_before,
                          [&](const auto& f) { std::ranges::sort(order, f); });
    std::size_t n_left = 0;
    sweep.restart();
    for (const std::size_t i : indices(order.size() - 1)) {
      sweep.take(order[i]);
      if (codes[order[i]] != codes[order[i + 1]] && consider(sweep, node, j, split_info))
        n_left = i + 1;
    }
    split_info.heuristic = true;
    if (n_left == 0) return;
    std::vector<std::uint8_t> left(groups.size());
    const std::uint32_t last = codes[order[n_left - 1]];
    for (std::size_t g = 0; g < left.size(); ++g) {
      const std::uint32_t code = groups.code(g);
      left[g] = mean[code] < mean[last] || (mean[code] == mean[last] && code <= last);
    }
    store_sets(groups, left, split_info);
  }

  // Moves all rows of some groups left.
  void take_groups(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j,
                   const std::vector<std::uint8_t>& left) const {
    Sweep& sweep = workspace.sweep;
    const Groups& groups = workspace.groups;
    sweep.restart();
    if constexpr (TakesGroups<Sweep>) {
      for (std::size_t g = 0; g < left.size(); ++g)
        if (left[g]) sweep.take(groups.sums(g), 1.0);
    } else {
      std::vector<std::uint32_t> chosen;
      for (std::size_t g = 0; g < left.size(); ++g)
        if (left[g]) chosen.push_back(groups.code(g));
      for (const auto part : chunks(rows_.members(node)))
        for (const RankedRow& e : part)
          if (std::ranges::binary_search(chosen, rows_.codes_of(j)[e.row])) sweep.take(e.row);
    }
  }

  // Whether the categories tell more than chance would.
  bool is_telling(const Groups& groups, const CartNode& node) const {
    if (groups.size() <= kFreeCategories) return true;
    const std::vector<double> total = groups.total();
    return beyond_chance(groups, total, scatter_of(node, total));
  }

  // sums: of all rows of the node.
  Scatter scatter_of(const CartNode& node, const std::vector<double>& sums) const {
    constexpr bool numbers = std::is_same_v<typename Rows::Y, double>;
    Scatter scatter;
    if (!numbers)
      for (std::size_t k = 1; k < sums.size(); ++k)
        scatter.total += sums[k] * (1.0 - sums[k] / sums[0]);
    if (!numbers && !rows_.weight) return scatter;
    double squares = 0.0;  // of weights
    for (const auto part : chunks(rows_.members(node)))
      for (const RankedRow& e : part) {
        const double one = rows_.weight ? rows_.weight[e.row] : 1.0;
        squares += one * one;
        if constexpr (numbers) {
          for (std::size_t k = 0; k < sums.size() / 2; ++k) {
            const double beyond = rows_.y.row(k)[e.row] - sums[2 * k + 1] / sums[0];
            scatter.total += one * beyond * beyond;
          }
        }
      }
    scatter.row = squares / sums[0];
    return scatter;
  }

  static void store_sets(const Groups& groups, const std::vector<std::uint8_t>& left,
                         SplitInfo& split_info) {
    split_info.left.clear();
    split_info.right.clear();
    for (std::size_t g = 0; g < groups.size(); ++g)
      (left[g] ? split_info.left : split_info.right).push_back(groups.code(g));
  }

  // Assigns every category to either child, until both have some; a missing value then goes to the
  // better one.
  void draw_set(Workspace<Sweep>& workspace, const CartNode& node, std::int64_t j,
                SplitInfo& split_info) const {
    Sweep& sweep = workspace.sweep;
    const Groups& groups = workspace.groups;
    const bool missing = groups.code(groups.size() - 1) == rows_.features->missing_code(j);
    const std::size_t n_seen = groups.size() - (missing ? 1 : 0);
    std::vector<std::uint8_t> left(groups.size(), 0);
    Random random(key_of(node.key, static_cast<std::uint64_t>(greedy_.feature_order.of(j))));
    std::size_t n_left;
    do {
      n_left = 0;
      for (std::size_t g = 0; g < n_seen; ++g) {
        left[g] = static_cast<std::uint8_t>(random.bits() >> 63);
        n_left += left[g];
      }
    } while (n_left == 0 || (n_left == n_seen && n_seen > 1));
    take_groups(workspace, node, j, left);
    if (consider(sweep, node, j, split_info)) store_sets(groups, left, split_info);
    if (!missing || n_left == n_seen) return;
    left.back() = 1;
    take_groups(workspace, node, j, left);
    if (consider(sweep, node, j, split_info)) store_sets(groups, left, split_info);
  }

  Rows rows_;
  const Decisions<Rows>& decide_;
  Greedy greedy_;
  std::vector<std::int64_t>& precedence_;
  int n_threads_;
  mutable Workspace<Sweep> workspace_;  // of nodes that are searched by one thread
  mutable Counts<Rows, Sweep> counts_;  // of the node that is searched
};

}  // namespace
}  // namespace certree
