// Greedy cells (CART): every cell is cut where the response becomes purest.
//
// Every feature of numbers keeps the rows of a cell in the order of its values, so that one sweep
// along them sees all cuts; a cut of the cell splits these lists and keeps their order. Small cells
// are grown in copies of their lists with rows of their own numbering, which fit into the cache. No
// cut is missed and no value is rounded.
//
// Missing values stand at the end of a list. A sweep is made with them on the right and, if there
// are any, one with them on the left.
//
// Features of categories need no order: the sums of each category are taken in one pass over the
// rows of a cell, and the categories, the missing value among them, are divided in two.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "buffer.hpp"
#include "core.hpp"
#include "criteria.hpp"
#include "features.hpp"
#include "random.hpp"
#include "two_sets.hpp"

namespace certree {
namespace {

struct Cut {
  double value = -HUGE_VAL;  // of the criterion
  double gain = 0.0;         // decrease in impurity
  std::int64_t feature = -1;
  bool heuristic = false;  // whether a better one may have been missed
  double middle = 0.0;     // of the means left and right; known where slopes are constrained
  // Of numbers: how many rows with a value go left, the threshold, and where missing values go.
  std::int64_t n_left = 0;
  double threshold = 0.0;
  bool missing_left = false;
  // Of categories: the codes that go left and those that go right, ascending.
  std::vector<std::uint32_t> left, right;

  bool is_made() const { return feature >= 0; }
};

// The rows of a grower: all of them, or those of a part under numbers of its own.
template <class Real, class Y>
struct CartRows {
  Matrix<Real> X;
  const Features* features;
  const std::uint32_t* original;  // (n,) row of X, null if it is the same
  std::int64_t n;
  const Y* y;            // (n,)
  const double* weight;  // (n,) or null
  std::int32_t n_classes;
  Entry* lists;          // (features.n_lists(), n)
  std::uint32_t* codes;  // (number of features of categories, n)

  Entry* list(std::int64_t j) const { return lists + features->index(j) * n; }
  std::uint32_t* codes_of(std::int64_t j) const { return codes + features->index(j) * n; }
  // Every list says which rows a cell has; this one does even where there are no numbers.
  Entry* members() const { return lists + (features->n_lists() - 1) * n; }
  double x(const Entry& e, std::int64_t j) const {
    return static_cast<double>(X.row(original ? original[e.row] : e.row)[j]);
  }
  double weight_of(const Entry& e) const { return weight ? weight[e.row] : 1.0; }
};

// What the search of a cell works with; it serves one cell after the other.
template <class Sweep>
struct Workspace {
  Sweep sweep;
  Groups groups;
  Divider<Sweep> divider;
  std::vector<double> table;  // sums by code; zero between searches

  template <class Rows>
  explicit Workspace(const Rows& rows)
      : sweep(rows.y, rows.weight, rows.n_classes), groups(sweep.width()), divider(sweep.width()) {}
};

// The order in which cells look at all features, so that of equal cuts the first wins: features
// whose best cut of the root is better come first, as they are more likely to mean something in
// small cells, where many cuts are equal. Written while the root is searched, before there are
// other cells.
class Precedence {
 public:
  explicit Precedence(std::int64_t n_features) : features_(static_cast<std::size_t>(n_features)) {
    std::iota(features_.begin(), features_.end(), std::int64_t{0});
  }

  const std::vector<std::int64_t>& features() const { return features_; }

  // worth: of each feature, by number.
  void set(const std::vector<double>& worth) {
    std::stable_sort(features_.begin(), features_.end(), [&](std::int64_t i, std::int64_t j) {
      return worth[static_cast<std::size_t>(i)] > worth[static_cast<std::size_t>(j)];
    });
  }

 private:
  std::vector<std::int64_t> features_;
};

template <class Real, class Y, class Sweep>
class CartRule {
 public:
  using Cut = certree::Cut;

  CartRule(const CartRows<Real, Y>& rows, const Stopping& stopping, const Greedy& greedy,
           Precedence& precedence, int n_threads)
      : rows_(rows),
        stopping_(stopping),
        greedy_(greedy),
        precedence_(precedence),
        n_threads_(n_threads),
        workspace_(rows),
        goes_left_(make_buffer<std::uint8_t>(rows.n)) {}

  bool split(const Cell& cell, Split& split, Cell& left, Cell& right) const {
    const Cut cut = search(cell);
    if (!cut.is_made()) return false;
    divide(cell, cut, split, left, right);
    return true;
  }

  // The best cut of the cell: of equal ones, that of the feature with precedence, then the lowest.
  Cut search(const Cell& cell) const {
    // Only the root comes here without having been looked at by its parent.
    if (cell.cursor == kUnseen && is_leaf(cell)) return Cut();
    if (cell.cursor == kLeafSeen) return Cut();
    const bool all = greedy_.max_features >= rows_.X.n_features;
    Cut winner = all ? best_of_all(cell) : best_of(cell, drawn_features(cell));
    winner.heuristic |= greedy_.random_cuts || !all;
    if (greedy_.min_gain > 0.0 && winner.gain < greedy_.min_gain) return Cut();
    return winner;
  }

  void divide(const Cell& cell, const Cut& cut, Split& split, Cell& left, Cell& right) const {
    split.feature = static_cast<std::int32_t>(cut.feature);
    split.heuristic = cut.heuristic;
    const bool by_set = rows_.features->is_categorical(cut.feature);
    const std::int64_t n_left =
        by_set ? send_by_set(cell, cut, split) : send_by_value(cell, cut, split);
    const std::int64_t middle = cell.begin + n_left;
    Entry* const members = rows_.members();
    partition(members, cell, middle);
    left = child(cell, cut, 0, cell.begin, middle);
    right = child(cell, cut, 1, middle, cell.end);
    if (left.cursor == kLeafSeen && right.cursor == kLeafSeen) return;
    parallel_for(rows_.features->n_lists(), threads_for(cell), [&](std::int64_t i) {
      Entry* const list = rows_.lists + i * rows_.n;
      if (list != members) partition(list, cell, middle);
    });
  }

  static constexpr std::int32_t kUnseen = 0, kInnerSeen = 1, kLeafSeen = 2;

 private:
  // Starting threads takes as long as sweeping some ten thousand rows.
  int threads_for(const Cell& cell) const {
    return cell.end - cell.begin >= 16384 ? n_threads_ : 1;
  }

  bool is_leaf(const Cell& cell) const {
    if (cell.depth >= stopping_.max_depth) return true;
    const Entry* const first = rows_.members() + cell.begin;
    const Entry* const last = rows_.members() + cell.end;
    double n = 0.0;
    for (const Entry* e = first; e != last && n <= stopping_.min_rows; ++e)
      n += std::max(rows_.weight_of(*e), 1.0);
    if (n <= stopping_.min_rows) return true;
    const Y head = rows_.y[first->row];
    return std::all_of(first, last, [&](const Entry& e) { return rows_.y[e.row] == head; });
  }

  Cell child(const Cell& cell, const Cut& cut, std::uint64_t side, std::int64_t begin,
             std::int64_t end) const {
    Cell part = cell;
    part.begin = begin;
    part.end = end;
    part.depth = cell.depth + 1;
    part.key = key_of(cell.key, side);
    const int slope = slope_of(cut.feature);
    // All means below the left child stay on one side of the middle, those below the right child on
    // the other.
    if (slope != 0) ((slope > 0) == (side == 0) ? part.upper : part.lower) = cut.middle;
    part.cursor = is_leaf(part) ? kLeafSeen : kInnerSeen;
    return part;
  }

  int slope_of(std::int64_t j) const { return greedy_.monotonic ? greedy_.monotonic[j] : 0; }

  bool is_allowed(const Sweep& sweep, const Cell& cell, std::int64_t j) const {
    if (!greedy_.monotonic) return true;
    const double left = sweep.mean_left(), right = sweep.mean_right();
    return std::min(left, right) >= cell.lower && std::max(left, right) <= cell.upper &&
           slope_of(j) * (right - left) >= 0.0;
  }

  // -- sending rows to their side: goes_left_ of every row of the cell, and how many go left

  std::int64_t send_by_value(const Cell& cell, const Cut& cut, Split& split) const {
    const Entry* const list = rows_.list(cut.feature);
    const std::int64_t edge = cell.begin + cut.n_left;
    std::int64_t n_missing = 0;
    double balance = 0.0;
    for (std::int64_t i = cell.begin; i < cell.end; ++i) {
      const bool missing = list[i].rank == kMissing;
      const bool left = missing ? cut.missing_left : i < edge;
      goes_left_[list[i].row] = left;
      n_missing += missing;
      balance += left ? rows_.weight_of(list[i]) : -rows_.weight_of(list[i]);
    }
    split.threshold = cut.threshold;
    split.missing_left = n_missing > 0 ? cut.missing_left : balance > 0.0;
    return cut.n_left + (cut.missing_left ? n_missing : 0);
  }

  std::int64_t send_by_set(const Cell& cell, const Cut& cut, Split& split) const {
    const auto& categories = rows_.features->categories_of(cut.feature);
    const std::uint32_t missing = rows_.features->missing_code(cut.feature);
    const std::uint32_t* const codes = rows_.codes_of(cut.feature);
    thread_local std::vector<std::uint8_t> in_left;
    if (in_left.size() <= missing) in_left.resize(missing + 1);
    for (const std::uint32_t code : cut.left) in_left[code] = 1;
    for (const std::uint32_t code : cut.right) in_left[code] = 0;
    std::int64_t n_left = 0;
    double balance = 0.0;
    const Entry* const members = rows_.members();
    for (const Entry* e = members + cell.begin; e != members + cell.end; ++e) {
      const bool left = in_left[codes[e->row]];
      goes_left_[e->row] = left;
      n_left += left;
      balance += left ? rows_.weight_of(*e) : -rows_.weight_of(*e);
    }
    if (cut.left.back() == missing || cut.right.back() == missing)
      split.missing_left = cut.left.back() == missing;
    else
      split.missing_left = balance > 0.0;
    for (const std::uint32_t code : split.missing_left ? cut.right : cut.left)
      split.categories.push_back(categories[code]);
    return n_left;
  }

  // Rows that go left move to the front, both sides keep their order.
  void partition(Entry* list, const Cell& cell, std::int64_t middle) const {
    thread_local std::vector<Entry> right;
    const auto size = static_cast<std::size_t>(cell.end - middle) + 1;  // one past is written
    if (right.size() < size) right.resize(size);
    Entry* to_left = list + cell.begin;
    Entry* to_right = right.data();
    for (const Entry* e = list + cell.begin; e != list + cell.end; ++e) {
      const Entry entry = *e;
      const std::size_t left = goes_left_[entry.row];
      *to_left = *to_right = entry;  // no branch: it would be guessed wrong too often
      to_left += left;
      to_right += 1 - left;
    }
    std::copy(right.data(), to_right, to_left);
  }

  // -- which features are looked at

  // Features in a random order, constant ones left out, until there are max_features; ascending.
  std::vector<std::int64_t> drawn_features(const Cell& cell) const {
    std::vector<std::int64_t> features(static_cast<std::size_t>(rows_.X.n_features)), drawn;
    std::iota(features.begin(), features.end(), std::int64_t{0});
    Random random(cell.key);
    for (auto n = static_cast<std::int64_t>(features.size());
         n > 0 && static_cast<std::int64_t>(drawn.size()) < greedy_.max_features; --n) {
      std::swap(features[static_cast<std::size_t>(random.below(n))],
                features[static_cast<std::size_t>(n - 1)]);
      const std::int64_t j = features[static_cast<std::size_t>(n - 1)];
      if (varies(cell, j)) drawn.push_back(j);
    }
    std::sort(drawn.begin(), drawn.end());
    return drawn;
  }

  bool varies(const Cell& cell, std::int64_t j) const {
    if (!rows_.features->is_categorical(j)) {
      const Entry* const list = rows_.list(j);
      return list[cell.begin].rank != list[cell.end - 1].rank;
    }
    const std::uint32_t* const codes = rows_.codes_of(j);
    const Entry* const first = rows_.members() + cell.begin;
    const Entry* const last = rows_.members() + cell.end;
    return !std::all_of(first, last,
                        [&](const Entry& e) { return codes[e.row] == codes[first->row]; });
  }

  Cut best_of_all(const Cell& cell) const {
    if (cell.depth > 0 || greedy_.random_cuts) return best_of(cell, precedence_.features());
    std::vector<double> worth(precedence_.features().size());
    Cut winner = best_of(cell, precedence_.features(), &worth);
    precedence_.set(worth);
    return winner;
  }

  // worth: if not null, the value of each feature's best cut, -HUGE_VAL if there is none.
  Cut best_of(const Cell& cell, const std::vector<std::int64_t>& features,
              std::vector<double>* worth = nullptr) const {
    const Entry* const first = rows_.members() + cell.begin;
    const Entry* const last = rows_.members() + cell.end;
    Cut winner;
    bool heuristic = false;
    const auto challenge = [&](std::int64_t j, Cut&& cut) {
      heuristic |= cut.heuristic;
      if (worth) (*worth)[static_cast<std::size_t>(j)] = cut.value;
      if (cut.is_made() && cut.value > winner.value) winner = std::move(cut);
    };
    if (threads_for(cell) > 1) {
      std::vector<Cut> cuts(features.size());
      parallel_for(static_cast<std::int64_t>(cuts.size()), n_threads_, [&](std::int64_t i) {
        Workspace<Sweep> workspace(rows_);
        workspace.sweep.start(first, last);
        const auto at = static_cast<std::size_t>(i);
        cuts[at] = best_of_feature(workspace, cell, features[at], -HUGE_VAL);
      });
      for (std::size_t i = 0; i < cuts.size(); ++i) challenge(features[i], std::move(cuts[i]));
    } else {
      workspace_.sweep.start(first, last);
      for (const std::int64_t j : features)
        challenge(j, best_of_feature(workspace_, cell, j, worth ? -HUGE_VAL : winner.value));
    }
    winner.heuristic = heuristic;
    return winner;
  }

  // The best cut by a feature whose value is above `to_beat`; not made if there is none.
  Cut best_of_feature(Workspace<Sweep>& workspace, const Cell& cell, std::int64_t j,
                      double to_beat) const {
    Cut cut;
    cut.value = to_beat;
    if (!varies(cell, j)) return cut;
    if (rows_.features->is_categorical(j)) {
      sum_categories(workspace, cell, j);
      if (greedy_.random_cuts)
        draw_set(workspace, cell, j, cut);
      else
        divide_set(workspace, cell, j, cut);
    } else {
      const Entry* const first = rows_.list(j) + cell.begin;
      const Entry* last = rows_.list(j) + cell.end;
      while (last > first && last[-1].rank == kMissing) --last;
      if (greedy_.random_cuts)
        draw_threshold(workspace.sweep, cell, j, first, last, cut);
      else
        sweep_along(workspace.sweep, cell, j, first, last, cut);
    }
    if (cut.is_made()) cut.gain = workspace.sweep.decrease(cut.value);
    return cut;
  }

  // Takes the state of the sweep as the cut if it is allowed and better.
  bool consider(const Sweep& sweep, const Cell& cell, std::int64_t j, Cut& cut) const {
    const double value = sweep.value();
    if (!(value > cut.value && is_allowed(sweep, cell, j))) return false;
    cut.value = value;
    cut.feature = j;
    if (greedy_.monotonic) cut.middle = (sweep.mean_left() + sweep.mean_right()) / 2.0;
    return true;
  }

  // -- numbers: [first, last) have a value, what follows up to the end of the cell is missing

  void sweep_along(Sweep& sweep, const Cell& cell, std::int64_t j, const Entry* first,
                   const Entry* last, Cut& cut) const {
    const Entry* const end = rows_.list(j) + cell.end;
    const Entry* edge = nullptr;  // the first row right of the cut
    const auto look = [&](const Entry* e, bool missing_left) {
      if (!consider(sweep, cell, j, cut)) return;
      edge = e;
      cut.missing_left = missing_left;
    };
    sweep.restart();
    for (const Entry* e = first; e + 1 < last; ++e) {
      sweep.take(e->row);
      if (e->rank != e[1].rank) look(e + 1, false);
    }
    if (last != end) {
      sweep.take(last[-1].row);
      look(last, false);
      sweep.restart();
      for (const Entry* e = last; e < end; ++e) sweep.take(e->row);
      for (const Entry* e = first; e + 1 < last; ++e) {
        sweep.take(e->row);
        if (e->rank != e[1].rank) look(e + 1, true);
      }
    }
    if (!edge) return;
    cut.n_left = edge - first;
    const double low = rows_.x(edge[-1], j);
    cut.threshold = edge == last ? low : between(low, rows_.x(*edge, j));
  }

  // One threshold between the smallest and the largest value; where there is but one value, it is
  // cut off from the missing ones.
  void draw_threshold(Sweep& sweep, const Cell& cell, std::int64_t j, const Entry* first,
                      const Entry* last, Cut& cut) const {
    const Entry* const end = rows_.list(j) + cell.end;
    const double low = rows_.x(*first, j), high = rows_.x(last[-1], j);
    Random random(key_of(cell.key, static_cast<std::uint64_t>(j)));
    const double share = random.uniform();
    const double drawn = low * (1.0 - share) + high * share;
    const double threshold = drawn >= low && drawn < high ? drawn : low;
    const Entry* const edge = std::partition_point(
        first, last, [&](const Entry& e) { return rows_.x(e, j) <= threshold; });
    sweep.restart();
    for (const Entry* e = first; e < edge; ++e) sweep.take(e->row);
    const auto look = [&](bool missing_left) {
      if (!consider(sweep, cell, j, cut)) return;
      cut.n_left = edge - first;
      cut.threshold = threshold;
      cut.missing_left = missing_left;
    };
    look(false);
    if (last == end || edge == last) return;
    for (const Entry* e = last; e < end; ++e) sweep.take(e->row);
    look(true);
  }

  // -- categories

  void sum_categories(Workspace<Sweep>& workspace, const Cell& cell, std::int64_t j) const {
    const std::uint32_t* const codes = rows_.codes_of(j);
    const Entry* const first = rows_.members() + cell.begin;
    const Entry* const last = rows_.members() + cell.end;
    const std::size_t width = workspace.sweep.width();
    const std::size_t n_codes = rows_.features->missing_code(j) + 1;
    if (workspace.table.size() < n_codes * width) workspace.table.resize(n_codes * width);
    double* const table = workspace.table.data();
    for (const Entry* e = first; e != last; ++e)
      workspace.sweep.add(table + codes[e->row] * width, e->row);
    workspace.groups.clear();
    const auto collect = [&](std::uint32_t code) {
      double* const sums = table + code * width;
      if (sums[0] <= 0.0) return;
      workspace.groups.add(code, sums);
      std::fill(sums, sums + width, 0.0);
    };
    if (n_codes <= static_cast<std::size_t>(last - first)) {
      for (std::uint32_t code = 0; code < n_codes; ++code) collect(code);
      return;
    }
    thread_local std::vector<std::uint32_t> seen;
    seen.clear();
    for (const Entry* e = first; e != last; ++e) seen.push_back(codes[e->row]);
    std::sort(seen.begin(), seen.end());
    for (const std::uint32_t code : seen) collect(code);
  }

  void divide_set(Workspace<Sweep>& workspace, const Cell& cell, std::int64_t j, Cut& cut) const {
    Sweep& sweep = workspace.sweep;
    const auto allowed = [&] { return is_allowed(sweep, cell, j); };
    const bool found = workspace.divider.search(sweep, workspace.groups, allowed, cut.value);
    // Among the divisions within bounds the best need not be a prefix.
    cut.heuristic = workspace.divider.heuristic() || greedy_.monotonic;
    if (!found) return;
    cut.feature = j;
    take_sides(workspace.groups, workspace.divider.left(), cut);
  }

  static void take_sides(const Groups& groups, const std::vector<std::uint8_t>& left, Cut& cut) {
    cut.left.clear();
    cut.right.clear();
    for (std::size_t g = 0; g < groups.size(); ++g)
      (left[g] ? cut.left : cut.right).push_back(groups.code(g));
  }

  // Every category to either side, until both have some; a missing value then to the better one.
  void draw_set(Workspace<Sweep>& workspace, const Cell& cell, std::int64_t j, Cut& cut) const {
    Sweep& sweep = workspace.sweep;
    const Groups& groups = workspace.groups;
    const bool missing = groups.code(groups.size() - 1) == rows_.features->missing_code(j);
    const std::size_t n_seen = groups.size() - (missing ? 1 : 0);
    std::vector<std::uint8_t> left(groups.size(), 0);
    Random random(key_of(cell.key, static_cast<std::uint64_t>(j)));
    std::size_t n_left;
    do {
      n_left = 0;
      for (std::size_t g = 0; g < n_seen; ++g) {
        left[g] = static_cast<std::uint8_t>(random.bits() >> 63);
        n_left += left[g];
      }
    } while (n_left == 0 || (n_left == n_seen && n_seen > 1));
    sweep.restart();
    for (std::size_t g = 0; g < n_seen; ++g)
      if (left[g]) sweep.take(groups.sums(g), 1.0);
    if (consider(sweep, cell, j, cut)) take_sides(groups, left, cut);
    if (!missing || n_left == n_seen) return;
    left.back() = 1;
    sweep.take(groups.sums(n_seen), 1.0);
    if (consider(sweep, cell, j, cut)) take_sides(groups, left, cut);
  }

  CartRows<Real, Y> rows_;
  Stopping stopping_;
  Greedy greedy_;
  Precedence& precedence_;
  int n_threads_;
  mutable Workspace<Sweep> workspace_;  // of cells that are searched by one thread
  Buffer<std::uint8_t> goes_left_;      // (n,) of the cell being split; cells are disjoint
};

// The rows of a cell under numbers of their own, so that what belongs to them lies close together.
template <class Real, class Y>
class Part {
 public:
  // number: (n,) scratch, of which disjoint parts use disjoint entries.
  Part(const CartRows<Real, Y>& whole, const Cell& cell, std::uint32_t* number)
      : features_(*whole.features),
        m_(cell.end - cell.begin),
        original_(make_buffer<std::uint32_t>(m_)),
        y_(make_buffer<Y>(m_)),
        weight_(make_buffer<double>(whole.weight ? m_ : 0)),
        lists_(make_buffer<Entry>(m_ * features_.n_lists())),
        codes_(make_buffer<std::uint32_t>(m_ * features_.n_sets())) {
    const Entry* const first = whole.members() + cell.begin;
    for (std::size_t i = 0; i < static_cast<std::size_t>(m_); ++i) {
      const std::uint32_t row = first[i].row;
      number[row] = static_cast<std::uint32_t>(i);
      original_[i] = row;
      y_[i] = whole.y[row];
      if (whole.weight) weight_[i] = whole.weight[row];
    }
    for (std::int64_t l = 0; l < features_.n_lists(); ++l) {
      const Entry* const from = whole.lists + l * whole.n + cell.begin;
      Entry* const to = lists_.get() + l * m_;
      for (std::int64_t i = 0; i < m_; ++i) to[i] = {from[i].rank, number[from[i].row]};
    }
    for (std::int64_t s = 0; s < features_.n_sets(); ++s) {
      const std::uint32_t* const from = whole.codes + s * whole.n;
      std::uint32_t* const to = codes_.get() + s * m_;
      for (std::int64_t i = 0; i < m_; ++i) to[i] = from[first[i].row];
    }
    rows_ = whole;
    rows_.original = original_.get();
    rows_.n = m_;
    rows_.y = y_.get();
    if (whole.weight) rows_.weight = weight_.get();
    rows_.lists = lists_.get();
    rows_.codes = codes_.get();
  }

  const CartRows<Real, Y>& rows() const { return rows_; }

 private:
  const Features& features_;
  std::int64_t m_;
  Buffer<std::uint32_t> original_;
  Buffer<Y> y_;
  Buffer<double> weight_;
  Buffer<Entry> lists_;
  Buffer<std::uint32_t> codes_;
  CartRows<Real, Y> rows_;
};

template <class Real, class Y, class Sweep>
TreeColumns grow_presorted(const CartRows<Real, Y>& rows, const Stopping& stopping,
                           const Greedy& greedy, int n_threads) {
  using Rule = CartRule<Real, Y, Sweep>;
  Precedence precedence(rows.X.n_features);
  const Rule rule(rows, stopping, greedy, precedence, n_threads);
  Cell root{0, rows.n, 0, Rule::kUnseen};
  root.key = greedy.key;
  if (greedy.max_leaves > 0) return grow_best_first(rule, root, greedy.max_leaves);
  const auto number = make_buffer<std::uint32_t>(rows.n);
  const auto grow_part = [&](const Cell& cell) {
    if (cell.cursor == Rule::kLeafSeen) return Growth<Rule>::whole(rule, cell);
    const Part<Real, Y> part(rows, cell, number.get());
    const Rule part_rule(part.rows(), stopping, greedy, precedence, 1);
    Cell part_cell = cell;
    part_cell.begin = 0;
    part_cell.end = part.rows().n;
    return Growth<Rule>::whole(part_rule, part_cell);
  };
  return Growth<Rule>::run(rule, root, n_threads, grow_part);
}

template <class Real>
void rank_numbers(const Matrix<Real>& X, const Features& features, Entry* lists, int n_threads) {
  parallel_for(features.n_numbers(), n_threads, [&](std::int64_t i) {
    sort_feature(X, features.numbers[static_cast<std::size_t>(i)], lists + i * X.n_rows);
  });
}

// The n rows of the grower, out of all that were ranked.
void pick(const Ranked& ranked, std::int64_t i, std::int64_t n, Entry* list) {
  const Entry* const order = ranked.order + i * ranked.n_rows;
  Entry* to = list;
  for (const Entry* from = order; to != list + n && from != order + ranked.n_rows; ++from) {
    const std::int32_t place = ranked.place[from->row];
    *to = {from->rank, static_cast<std::uint32_t>(place)};
    to += place >= 0;  // no branch: it would be guessed wrong too often
  }
  if (to != list + n) throw std::invalid_argument("order must hold every row once");
}

template <class Real, class Y, class Sweep>
TreeColumns grow_with(const Matrix<Real>& X, const Ranked& ranked, const Y* y,
                      std::int32_t n_classes, const Stopping& stopping, const Greedy& greedy,
                      int n_threads) {
  const std::int64_t n = X.n_rows;
  Features features(X.n_features, greedy.category);
  const auto codes = make_buffer<std::uint32_t>(n * features.n_sets());
  encode_all(X, features, codes.get(), n_threads);
  const auto lists = make_buffer<Entry>(n * features.n_lists());
  if (ranked.order)
    parallel_for(features.n_numbers(), n_threads,
                 [&](std::int64_t i) { pick(ranked, i, n, lists.get() + i * n); });
  else
    rank_numbers(X, features, lists.get(), n_threads);
  const CartRows<Real, Y> rows{X,         &features,   nullptr,    n, y, stopping.weight,
                               n_classes, lists.get(), codes.get()};
  if (features.n_sets() > 0)
    for (std::int64_t i = 0; i < n; ++i) rows.members()[i] = {0, static_cast<std::uint32_t>(i)};
  return grow_presorted<Real, Y, Sweep>(rows, stopping, greedy, n_threads);
}

}  // namespace

template <class Real>
void rank_rows(const Matrix<Real>& X, const std::uint8_t* category, RankedRow* order,
               int n_threads) {
  rank_numbers(X, Features(X.n_features, category), order, n_threads);
}

template void rank_rows(const Matrix<float>&, const std::uint8_t*, RankedRow*, int);
template void rank_rows(const Matrix<double>&, const std::uint8_t*, RankedRow*, int);

template <class Real>
TreeColumns grow_cart(const Matrix<Real>& X, const Ranked& ranked, const Response& response,
                      const Stopping& stopping, const Greedy& greedy, int n_threads) {
  const auto with = [&](auto* sweep, const auto* y) {
    using Sweep = std::remove_pointer_t<decltype(sweep)>;
    using Y = std::remove_const_t<std::remove_pointer_t<decltype(y)>>;
    return grow_with<Real, Y, Sweep>(X, ranked, y, response.n_classes, stopping, greedy, n_threads);
  };
  const bool two_classes = response.y && response.n_classes <= 2;
  const auto bits = make_buffer<std::uint8_t>(two_classes ? X.n_rows : 0);
  if (two_classes)
    for (std::int64_t i = 0; i < X.n_rows; ++i)
      bits[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(response.y[i]);
  const std::uint8_t* const binary = two_classes ? bits.get() : nullptr;
  switch (response.criterion) {
    case Criterion::squared:
      return with(static_cast<SquaredSweep<double>*>(nullptr), response.target);
    case Criterion::entropy:
      if (stopping.weight || static_cast<double>(X.n_rows) > Information::kMost)
        return with(static_cast<EntropySweep*>(nullptr), response.y);
      if (binary) return with(static_cast<BinaryEntropySweep*>(nullptr), binary);
      return with(static_cast<CountedEntropySweep*>(nullptr), response.y);
    case Criterion::misclassification:
      return with(static_cast<MisclassificationSweep*>(nullptr), response.y);
    default:
      if (binary) return with(static_cast<SquaredSweep<std::uint8_t>*>(nullptr), binary);
      return with(static_cast<GiniSweep*>(nullptr), response.y);
  }
}

template TreeColumns grow_cart(const Matrix<float>&, const Ranked&, const Response&,
                               const Stopping&, const Greedy&, int);
template TreeColumns grow_cart(const Matrix<double>&, const Ranked&, const Response&,
                               const Stopping&, const Greedy&, int);

}  // namespace certree
