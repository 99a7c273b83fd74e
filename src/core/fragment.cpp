// The pruning that pays its cost and a penalty of its cheapest root fragment, in one pass up.
//
// At every node one of three is best: the fragment goes on, and both sides are solved for
// themselves; pruning and fragment end; or the fragment ends and the pruning goes on. The third is
// a search over the prunings below the node for the smallest cost + factor sqrt(leaves). As the
// root is concave, only those count that are best for some price of a leaf, so each node keeps the
// bends of that path, in the order of their prices. Two rows of bends merge in at most the bends of
// both: O(m log m) in all for balanced trees, O(m depth) at worst.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "core.hpp"
#include "links.hpp"

namespace certree {
namespace {

// The bends below each node by ascending price, with the sums of costs and leaves up to each.
class BendRows {
 public:
  explicit BendRows(std::int32_t n_nodes) : rows_(static_cast<std::size_t>(n_nodes)) {}

  const std::vector<Bend>& row(std::int32_t v) const { return rows_[static_cast<std::size_t>(v)]; }
  bool empty(std::int32_t v) const { return row(v).empty(); }
  Bend top(std::int32_t v) const { return step(row(v), row(v).size() - 1); }
  void pop(std::int32_t v) { own(v).pop_back(); }
  void push(std::int32_t v, const Bend& bend) { append(own(v), bend); }

  void join(std::int32_t v, std::int32_t l) {
    std::vector<Bend>&a = own(l), &b = own(l + 1);
    if (a.size() < b.size()) std::swap(a, b);
    merge(a, b);
    own(v) = std::move(a);
    b = {};
  }

 private:
  static Bend step(const std::vector<Bend>& row, std::size_t i) {
    if (i == 0) return row[0];
    const Bend &bend = row[i], &before = row[i - 1];
    return {bend.price, bend.cost - before.cost, bend.leaves - before.leaves};
  }

  // Bends of one price are one.
  static void append(std::vector<Bend>& row, const Bend& bend) {
    if (row.empty()) {
      row.push_back(bend);
      return;
    }
    Bend& last = row.back();
    const Bend sum{bend.price, last.cost + bend.cost, last.leaves + bend.leaves};
    if (last.price == bend.price)
      last = sum;
    else
      row.push_back(sum);
  }

  // Adds the bends of `fewer` to `more`, whose bends at lower prices stay where they are.
  void merge(std::vector<Bend>& more, const std::vector<Bend>& fewer) {
    if (fewer.empty()) return;
    std::size_t i = static_cast<std::size_t>(
        std::lower_bound(more.begin(), more.end(), fewer[0].price,
                         [](const Bend& bend, double price) { return bend.price < price; }) -
        more.begin());
    moved_.clear();
    for (std::size_t k = i; k < more.size(); ++k) moved_.push_back(step(more, k));
    more.resize(i);
    i = 0;
    for (std::size_t j = 0; i < moved_.size() || j < fewer.size();) {
      const bool first =
          j == fewer.size() || (i < moved_.size() && moved_[i].price < fewer[j].price);
      append(more, first ? moved_[i++] : step(fewer, j++));
    }
  }

  std::vector<Bend>& own(std::int32_t v) { return rows_[static_cast<std::size_t>(v)]; }

  std::vector<std::vector<Bend>> rows_;
  std::vector<Bend> moved_;
};

// What a node pays at best, beyond its cost as a leaf, and how.
struct Choice {
  double value;
  Division division;
  double price;  // of a leaf, that prunes below where the fragment ends and the pruning goes on
};

class RootSearch {
 public:
  // Of the prunings along a row of bends, up to `smallest`, that with the smallest
  // cost + factor sqrt(leaves) + constant, if that is below the best so far.
  //
  // Between two of them the root lies above its chord, for which the best is found by its slope.
  // What it comes to there bounds all between the two, so that few of them are looked at.
  Choice below(const std::vector<Bend>& bends, const Excess& smallest, double factor,
               double constant, Choice best) {
    const auto pruning = [&](std::size_t i) {
      if (bends.empty()) return smallest;
      const double cost = i == 0 ? 0.0 : bends[i - 1].cost;
      const double leaves = i == 0 ? 0.0 : bends[i - 1].leaves;
      return Excess{smallest.cost - (bends.back().cost - cost),
                    smallest.leaves + (bends.back().leaves - leaves)};
    };
    const auto look_at = [&](std::size_t i) {
      const Excess at = pruning(i);
      const double value = at.cost + (factor * std::sqrt(at.leaves) + constant);
      if (value < best.value) best = {value, divided, i == 0 ? 0.0 : bends[i - 1].price};
    };
    look_at(bends.size());
    look_at(0);
    open_.assign(1, {0, bends.size()});
    while (!open_.empty()) {
      const auto [first, last] = open_.back();
      open_.pop_back();
      const double root = std::sqrt(pruning(last).leaves);
      const double slope = factor / (std::sqrt(pruning(first).leaves) + root);
      const auto from = bends.begin();
      const auto middle = static_cast<std::size_t>(
          std::upper_bound(from + static_cast<std::ptrdiff_t>(first),
                           from + static_cast<std::ptrdiff_t>(last), slope,
                           [](double price, const Bend& bend) { return price < bend.price; }) -
          from);
      if (middle == first || middle == last) continue;  // an end is best for the chord
      look_at(middle);
      const Excess at = pruning(middle);
      const double chord = factor * root + slope * (at.leaves - pruning(last).leaves);
      if (at.cost + (chord + constant) >= best.value) continue;
      open_.emplace_back(first, middle);
      open_.emplace_back(middle, last);
    }
    return best;
  }

 private:
  std::vector<std::pair<std::size_t, std::size_t>> open_;
};

}  // namespace

void fragment_pruning(const std::int32_t* left, std::int32_t n_nodes,
                      const FragmentPenalty& penalty, std::uint8_t* division) {
  const auto choices = make_buffer<Choice>(n_nodes);
  const auto critical = make_buffer<double>(n_nodes);
  BendRows bends(n_nodes);
  RootSearch search;
  const auto as_leaf = [&](std::int32_t v) {
    return Choice{penalty.size_penalty[v] + penalty.cell_penalty[v], whole, 0.0};
  };
  for (std::int32_t v = 0; v < n_nodes; ++v)
    if (left[v] == kLeaf) choices[static_cast<std::size_t>(v)] = as_leaf(v);
  const auto choose = [&](std::int32_t v, const Excess& below) {
    const auto l = static_cast<std::size_t>(left[v]);
    Choice best = as_leaf(v);
    const double apart = choices[l].value + choices[l + 1].value + penalty.cost_gain[v];
    if (apart < best.value) best = {apart, divided_in_fragment, 0.0};
    const Excess smallest{below.cost, 1.0 + below.leaves - penalty.chain_leaves[v]};
    choices[static_cast<std::size_t>(v)] = search.below(
        bends.row(v), smallest, penalty.size_penalty[v], penalty.cell_penalty[v], best);
  };
  weakest_links(left, n_nodes, penalty.cost_gain, penalty.leaf_gain, bends, choose, critical.get());
  // Where the fragment has ended above, the price that prunes from there on; where not, below 0.
  const auto price = make_buffer<double>(n_nodes);
  price[0] = -1.0;
  for (std::int32_t v = 0; v < n_nodes; ++v) {
    const auto u = static_cast<std::size_t>(v);
    const bool ended = price[u] >= 0.0;
    division[v] = ended ? critical[u] > price[u] ? divided : whole : choices[u].division;
    if (left[v] == kLeaf) continue;
    const double below = ended || division[v] != divided ? price[u] : choices[u].price;
    price[static_cast<std::size_t>(left[v])] = price[static_cast<std::size_t>(left[v]) + 1] = below;
  }
}

}  // namespace certree
