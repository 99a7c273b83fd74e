// The best cut of a cell of the greedy grower.
//
// Missing values stand at the end of a list. A sweep is made with them on the right and, if there
// are any, one with them on the left.
//
// Features of categories need no order: the sums of each category are taken in one pass over the
// rows of a cell, and the categories, the missing value among them, are divided in two, if
// they differ by more than chance explains.
#pragma once

#include <functional>

#include "grow/cart_counts.hpp"
#include "grow/cart_decide.hpp"
#include "grow/chance.hpp"

namespace certree {
namespace {

// Whether what a side costs is told by sums of its groups, or by its rows alone.
template <class Sweep>
concept TakesGroups = requires(Sweep sweep, const double* sums) { sweep.take(sums, 1.0); };

// What the search of a cell works with; it serves one cell after the other.
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

// What finds the best cut of a cell, whatever makes a cut good: all but this is one code for all.
class AnySearch {
 public:
  virtual ~AnySearch() = default;
  virtual Cut best(const CartCell& cell) const = 0;
};

template <class Rows, class Sweep>
class Search : public AnySearch {
 public:
  // precedence: (p,) the order in which nodes compare all features, so that of equal cuts the first
  // wins: features whose best cut of the root is better come first, as they are more likely to mean
  // something in small cells, where many cuts are equal. Written while the root is searched, before
  // there are other cells.
  Search(const Rows& rows, const Decisions<Rows>& decide, const Greedy& greedy,
         std::vector<std::int64_t>& precedence, int n_threads)
      : rows_(rows),
        decide_(decide),
        greedy_(greedy),
        precedence_(precedence),
        n_threads_(n_threads),
        workspace_(rows),
        counts_(rows, workspace_.sweep.width()) {}

  // The best cut of the cell: of equal ones, that of the feature with precedence, then the lowest.
  Cut best(const CartCell& cell) const override {
    if (cell.is_leaf) return Cut();
    const bool all = greedy_.max_features >= rows_.X.width();
    Cut winner = all ? best_of_all(cell) : best_of(cell, decide_.drawn_features(cell));
    winner.heuristic |= greedy_.random_cuts || !all;
    if (greedy_.min_gain > 0.0 && winner.gain < greedy_.min_gain) return Cut();
    return winner;
  }

 private:
  Cut best_of_all(const CartCell& cell) const {
    if (cell.depth > 0 || greedy_.random_cuts) return best_of(cell, precedence_);
    std::vector<double> worth(precedence_.size());
    Cut winner = best_of(cell, precedence_, &worth);
    std::ranges::stable_sort(precedence_, std::greater(),
                             [&](std::int64_t j) { return worth[static_cast<std::size_t>(j)]; });
    return winner;
  }

  // worth: if not null, the value of each feature's best cut, -HUGE_VAL if there is none.
  Cut best_of(const CartCell& cell, const std::vector<std::int64_t>& features,
              std::vector<double>* worth = nullptr) const {
    count_steps(features.size());
    const auto members = rows_.members(cell);
    counts_.count(cell, workspace_.sweep, n_threads_);
    Cut winner;
    bool heuristic = false;
    if (worth) std::ranges::fill(*worth, -HUGE_VAL);
    const auto challenge = [&](std::int64_t j, Cut&& cut) {
      heuristic |= cut.heuristic;
      if (worth) (*worth)[static_cast<std::size_t>(j)] = cut.value;
      if (cut.is_made() && cut.value > winner.value) winner = std::move(cut);
    };
    if (threads_for(cell, n_threads_) > 1) {
      std::vector<Cut> cuts(features.size());
      parallel_for(static_cast<std::int64_t>(cuts.size()), n_threads_, [&](std::int64_t i) {
        Workspace<Sweep> workspace(rows_);
        workspace.sweep.start(members);
        const auto at = static_cast<std::size_t>(i);
        if (varies(cell, features[at]))
          cuts[at] = best_of_feature(workspace, cell, features[at], -HUGE_VAL);
      });
      for (std::size_t i = 0; i < cuts.size(); ++i) challenge(features[i], std::move(cuts[i]));
    } else {
      workspace_.sweep.start(members);
      for (const std::int64_t j : features)
        if (varies(cell, j))
          challenge(j, best_of_feature(workspace_, cell, j, worth ? -HUGE_VAL : winner.value));
    }
    winner.heuristic = heuristic;
    return winner;
  }

  bool varies(const CartCell& cell, std::int64_t j) const {
    return rows_.few->holds(j) ? counts_.varies(j) : rows_.varies(cell, j);
  }

  // The best cut by a feature that varies whose value is above `to_beat`; not made if there is
  // none.
  Cut best_of_feature(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j,
                      double to_beat) const {
    Cut cut;
    cut.value = to_beat;
    if (rows_.few->holds(j)) {
      if constexpr (TakesGroups<Sweep>) sweep_values(workspace, cell, j, cut);
    } else if (rows_.features->is_categorical(j)) {
      sum_categories(workspace, cell, j);
      if (greedy_.random_cuts)
        draw_set(workspace, cell, j, cut);
      else
        divide_set(workspace, cell, j, cut);
    } else {
      const Line line(rows_.list(j, cell));
      if (greedy_.random_cuts)
        draw_threshold(workspace.sweep, cell, j, line, cut);
      else
        sweep_along(workspace.sweep, cell, j, line, cut);
    }
    if (cut.is_made()) cut.gain = workspace.sweep.decrease(cut.value);
    return cut;
  }

  // Takes the state of the sweep as the cut if it is allowed and better.
  bool consider(const Sweep& sweep, const CartCell& cell, std::int64_t j, Cut& cut) const {
    const double value = sweep.value();
    if (!(value > cut.value && decide_.is_allowed(sweep, cell, j))) return false;
    cut.value = value;
    cut.feature = j;
    if (!greedy_.monotonic.empty()) cut.middle = (sweep.mean_left() + sweep.mean_right()) / 2.0;
    return true;
  }

  // -- numbers

  // The rows of a cell in the order of a feature: [first, last) have a value, [last, end) miss it.
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

  void sweep_along(Sweep& sweep, const CartCell& cell, std::int64_t j, const Line& line,
                   Cut& cut) const {
    const auto [first, last, end] = line;
    const RankedRow* edge = nullptr;  // the first row right of the cut
    const auto compare = [&](const RankedRow* e, bool missing_left) {
      if (!consider(sweep, cell, j, cut)) return;
      edge = e;
      cut.missing_left = missing_left;
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
    cut.n_left = edge - first;
    const double low = rows_.x(edge[-1], j);
    cut.threshold = edge == last ? low : between(low, rows_.x(*edge, j));
  }

  // The same where rows are counted by value; none is missing.
  void sweep_values(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j,
                    Cut& cut) const {
    Groups& groups = workspace.groups;
    const std::vector<double>& values = rows_.few->feature(j).values;
    counts_.collect(j, groups);
    workspace.sweep.restart();
    for (std::size_t right = 1; right < groups.size(); ++right) {
      workspace.sweep.take(groups.sums(right - 1), 1.0);
      if (consider(workspace.sweep, cell, j, cut))
        cut.threshold = between(values[groups.code(right - 1)], values[groups.code(right)]);
    }
  }

  // One threshold between the smallest and the largest value; where there is but one value, it is
  // cut off from the missing ones.
  void draw_threshold(Sweep& sweep, const CartCell& cell, std::int64_t j, const Line& line,
                      Cut& cut) const {
    const auto [first, last, end] = line;
    const double low = rows_.x(*first, j), high = rows_.x(last[-1], j);
    Random random(key_of(cell.key, static_cast<std::uint64_t>(greedy_.feature_order.of(j))));
    const double share = random.uniform();
    const double drawn = low * (1.0 - share) + high * share;
    const double threshold = drawn >= low && drawn < high ? drawn : low;
    const RankedRow* const edge = std::partition_point(
        first, last, [&](const RankedRow& e) { return rows_.x(e, j) <= threshold; });
    sweep.restart();
    take(sweep, first, edge);
    const auto compare = [&](bool missing_left) {
      if (!consider(sweep, cell, j, cut)) return;
      cut.n_left = edge - first;
      cut.threshold = threshold;
      cut.missing_left = missing_left;
    };
    compare(false);
    if (last == end || edge == last) return;
    take(sweep, last, end);
    compare(true);
  }

  // -- categories

  void sum_categories(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j) const {
    const std::uint32_t* const codes = rows_.codes_of(j);
    const auto members = rows_.members(cell);
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

  void divide_set(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j,
                  Cut& cut) const {
    if (!is_telling(workspace.groups, cell)) return;
    if constexpr (TakesGroups<Sweep>) {
      Sweep& sweep = workspace.sweep;
      const auto allowed = [&] { return decide_.is_allowed(sweep, cell, j); };
      const bool found = workspace.divider.search(sweep, workspace.groups, allowed, cut.value);
      // Among the divisions that are allowed the best need not be a prefix.
      cut.heuristic = workspace.divider.heuristic() || decide_.forbids();
      if constexpr (requires(const double* sums) { sweep.refuses(sums); })
        for (std::size_t g = 0; g < workspace.groups.size(); ++g)
          cut.heuristic |= sweep.refuses(workspace.groups.sums(g));
      if (!found) return;
      cut.feature = j;
      take_sides(workspace.groups, workspace.divider.left(), cut);
    } else {
      sweep_along_means(workspace, cell, j, cut);
    }
  }

  // Every prefix of the categories in the order of their means, row by row; the best division need
  // not be one of them.
  void sweep_along_means(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j,
                         Cut& cut) const {
    Sweep& sweep = workspace.sweep;
    const Groups& groups = workspace.groups;
    const std::uint32_t* const codes = rows_.codes_of(j);
    thread_local std::vector<double> mean;  // by code
    if (mean.size() <= rows_.features->missing_code(j))
      mean.resize(rows_.features->missing_code(j) + 1);
    for (std::size_t g = 0; g < groups.size(); ++g)
      mean[groups.code(g)] = sweep.score(groups.sums(g));
    std::vector<std::uint32_t> order;
    for (const auto part : chunks(rows_.members(cell)))
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
      if (codes[order[i]] != codes[order[i + 1]] && consider(sweep, cell, j, cut)) n_left = i + 1;
    }
    cut.heuristic = true;
    if (n_left == 0) return;
    std::vector<std::uint8_t> left(groups.size());
    const std::uint32_t last = codes[order[n_left - 1]];
    for (std::size_t g = 0; g < left.size(); ++g) {
      const std::uint32_t code = groups.code(g);
      left[g] = mean[code] < mean[last] || (mean[code] == mean[last] && code <= last);
    }
    take_sides(groups, left, cut);
  }

  // Moves all rows of some groups left.
  void take_groups(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j,
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
      for (const auto part : chunks(rows_.members(cell)))
        for (const RankedRow& e : part)
          if (std::ranges::binary_search(chosen, rows_.codes_of(j)[e.row])) sweep.take(e.row);
    }
  }

  // Whether the categories tell more than chance would.
  bool is_telling(const Groups& groups, const CartCell& cell) const {
    if (groups.size() <= kFreeCategories) return true;
    const std::vector<double> total = groups.total();
    return beyond_chance(groups, total, scatter_of(cell, total));
  }

  // sums: of all rows of the cell.
  Scatter scatter_of(const CartCell& cell, const std::vector<double>& sums) const {
    constexpr bool numbers = std::is_same_v<typename Rows::Y, double>;
    Scatter scatter;
    if (!numbers)
      for (std::size_t k = 1; k < sums.size(); ++k)
        scatter.total += sums[k] * (1.0 - sums[k] / sums[0]);
    if (!numbers && !rows_.weight) return scatter;
    double squares = 0.0;  // of weights
    for (const auto part : chunks(rows_.members(cell)))
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

  static void take_sides(const Groups& groups, const std::vector<std::uint8_t>& left, Cut& cut) {
    cut.left.clear();
    cut.right.clear();
    for (std::size_t g = 0; g < groups.size(); ++g)
      (left[g] ? cut.left : cut.right).push_back(groups.code(g));
  }

  // Every category to either side, until both have some; a missing value then to the better one.
  void draw_set(Workspace<Sweep>& workspace, const CartCell& cell, std::int64_t j, Cut& cut) const {
    Sweep& sweep = workspace.sweep;
    const Groups& groups = workspace.groups;
    const bool missing = groups.code(groups.size() - 1) == rows_.features->missing_code(j);
    const std::size_t n_seen = groups.size() - (missing ? 1 : 0);
    std::vector<std::uint8_t> left(groups.size(), 0);
    Random random(key_of(cell.key, static_cast<std::uint64_t>(greedy_.feature_order.of(j))));
    std::size_t n_left;
    do {
      n_left = 0;
      for (std::size_t g = 0; g < n_seen; ++g) {
        left[g] = static_cast<std::uint8_t>(random.bits() >> 63);
        n_left += left[g];
      }
    } while (n_left == 0 || (n_left == n_seen && n_seen > 1));
    take_groups(workspace, cell, j, left);
    if (consider(sweep, cell, j, cut)) take_sides(groups, left, cut);
    if (!missing || n_left == n_seen) return;
    left.back() = 1;
    take_groups(workspace, cell, j, left);
    if (consider(sweep, cell, j, cut)) take_sides(groups, left, cut);
  }

  Rows rows_;
  const Decisions<Rows>& decide_;
  Greedy greedy_;
  std::vector<std::int64_t>& precedence_;
  int n_threads_;
  mutable Workspace<Sweep> workspace_;  // of cells that are searched by one thread
  mutable Counts<Rows, Sweep> counts_;  // of the cell that is searched
};

}  // namespace
}  // namespace certree
