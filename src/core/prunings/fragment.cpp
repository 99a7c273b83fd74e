// The pruning that pays its cost and a penalty of its cheapest root fragment, in one pass up.
//
// At every node one of three is best: the fragment goes on, and both sides are solved for
// themselves; pruning and fragment end; or the fragment ends and the pruning goes on. The third is
// a search over the prunings below the node for the smallest cost + factor sqrt(leaves). As the
// root is concave, only those count that are best for some price of a leaf, so each node keeps the
// bends of that path.
//
// It keeps them in a few rows, each by ascending price and at least twice as long as the next one.
// A bend that moves comes into a row at least half as long again, so that all moves take O(m log
// m), whatever the shape of the tree.
#include <iterator>

#include "prunings/weakest_links.hpp"

namespace certree {
namespace {

// Bends by ascending price, each with the sums of costs and leaves up to it.
class BendRow {
 public:
  explicit BendRow(const Bend& bend) : sums_{bend} {}

  std::size_t size() const { return sums_.size(); }
  Bend top() const { return step(sums_.size() - 1); }
  void pop() { sums_.pop_back(); }

  // Bends of one price are one.
  void push(const Bend& bend) {
    Bend sum = bend;
    if (!sums_.empty()) {
      const Bend& last = sums_.back();
      sum = {bend.price, last.cost + bend.cost, last.leaves + bend.leaves};
      if (last.price == bend.price) sums_.pop_back();
    }
    sums_.push_back(sum);
  }

  void merge(const BendRow& other) {
    BendRow both;
    both.sums_.reserve(size() + other.size());
    std::size_t i = 0, j = 0;
    for ([[maybe_unused]] const std::size_t turn : indices(size() + other.size())) {
      const bool own = j == other.size() || (i < size() && sums_[i].price < other.sums_[j].price);
      both.push(own ? step(i++) : other.step(j++));
    }
    *this = std::move(both);
  }

  // Costs and leaves of the bends above a price.
  Excess above(double price) const {
    const auto bend =
        std::upper_bound(sums_.begin(), sums_.end(), price,
                         [](double low, const Bend& high) { return low < high.price; });
    const Bend &all = sums_.back(), none{0.0, 0.0, 0.0};
    const Bend& up_to = bend == sums_.begin() ? none : *(bend - 1);
    return {all.cost - up_to.cost, all.leaves - up_to.leaves};
  }

 private:
  BendRow() = default;
  Bend step(std::size_t i) const {
    const Bend& sum = sums_[i];
    if (i == 0) return sum;
    return {sum.price, sum.cost - sums_[i - 1].cost, sum.leaves - sums_[i - 1].leaves};
  }

  std::vector<Bend> sums_;
};

class BendRows {
 public:
  explicit BendRows(std::size_t n_nodes) : rows_(n_nodes) {}

  const std::vector<BendRow>& operator[](std::size_t v) const { return rows_[v]; }
  bool empty(std::size_t v) const { return rows_[v].empty(); }
  Bend top(std::size_t v) { return highest(v)->top(); }

  void pop(std::size_t v) {
    const auto row = highest(v);
    row->pop();
    if (row->size() == 0) rows_[v].erase(row);
  }

  // No bend below the node has a higher price, so that it may end any row.
  void push(std::size_t v, const Bend& bend) {
    if (empty(v))
      rows_[v].emplace_back(bend);
    else
      rows_[v][0].push(bend);
  }

  void join(std::size_t v, std::size_t l) {
    std::vector<BendRow> rows = std::move(rows_[l]), more = std::move(rows_[l + 1]);
    if (rows.size() < more.size()) std::swap(rows, more);
    std::move(more.begin(), more.end(), std::back_inserter(rows));
    std::sort(rows.begin(), rows.end(),
              [](const BendRow& a, const BendRow& b) { return a.size() > b.size(); });
    for (std::size_t i = rows.size(); i-- > 1;) {
      if (rows[i - 1].size() >= 2 * rows[i].size()) continue;
      rows[i - 1].merge(rows[i]);
      rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(i));
    }
    rows_[v] = std::move(rows);
  }

 private:
  std::vector<BendRow>::iterator highest(std::size_t v) {
    return std::max_element(
        rows_[v].begin(), rows_[v].end(),
        [](const BendRow& a, const BendRow& b) { return a.top().price < b.top().price; });
  }

  std::vector<std::vector<BendRow>> rows_;
};

// What a node pays at best, beyond its cost as a leaf, and how.
struct Choice {
  double value;
  Division division;
  double price;  // of a leaf, that prunes below where the fragment ends and the pruning goes on
};

class RootSearch {
 public:
  // Of the prunings along a path, up to `smallest`, that with the smallest
  // cost + factor sqrt(leaves) + constant, if that is below the best so far.
  //
  // Between two of them the root lies above its chord, for which the best is found by its slope.
  // What it comes to there bounds all between the two, so that few of them are looked at.
  Choice below(const std::vector<BendRow>& bends, const Excess& smallest, double factor,
               double constant, Choice best) {
    const auto look_at = [&](double price) {
      count_steps(1 + bends.size());
      Excess pruning = smallest;
      for (const BendRow& row : bends) {
        const Excess above = row.above(price);
        pruning.cost -= above.cost;
        pruning.leaves += above.leaves;
      }
      const double value = pruning.cost + (factor * std::sqrt(pruning.leaves) + constant);
      if (value < best.value) best = {value, Division::pruning, price};
      return pruning;
    };
    const Excess last = look_at(std::numeric_limits<double>::max());
    open_.assign(1, {look_at(0.0), last});
    while (!open_.empty()) {
      const auto [large, small] = open_.back();
      open_.pop_back();
      if (large.leaves == small.leaves) continue;
      const double root = std::sqrt(small.leaves);
      const double slope = factor / (std::sqrt(large.leaves) + root);
      const Excess middle = look_at(slope);
      if (middle.leaves >= large.leaves || middle.leaves <= small.leaves)
        continue;  // an end is best for the chord
      const double chord = factor * root + slope * (middle.leaves - small.leaves);
      if (middle.cost + (chord + constant) >= best.value) continue;
      open_.emplace_back(large, middle);
      open_.emplace_back(middle, small);
    }
    return best;
  }

 private:
  std::vector<std::pair<Excess, Excess>> open_;
};

}  // namespace

void fragment_pruning(Shape tree, const FragmentPenalty& penalty, std::span<Division> division) {
  const std::size_t m = tree.size();
  const auto choices = make_buffer<Choice>(m);
  const auto critical = make_buffer<double>(m);
  BendRows bends(m);
  RootSearch search;
  const auto as_leaf = [&](std::size_t v) {
    return Choice{penalty.size_penalty[v] + penalty.cell_penalty[v], Division::none, 0.0};
  };
  for (const std::size_t v : indices(m))
    if (tree.is_leaf(v)) choices[v] = as_leaf(v);
  const auto choose = [&](std::size_t v, const Excess& below) {
    const std::size_t l = tree.left(v);
    Choice best = as_leaf(v);
    const double apart = choices[l].value + choices[l + 1].value + penalty.gains.cost[v];
    if (apart < best.value) best = {apart, Division::fragment, 0.0};
    const Excess smallest{below.cost, 1.0 + below.leaves - penalty.chain_leaves[v]};
    choices[v] =
        search.below(bends[v], smallest, penalty.size_penalty[v], penalty.cell_penalty[v], best);
  };
  weakest_links(tree, penalty.gains, bends, choose, {critical.get(), m});
  // Where the fragment has ended above, the price that prunes from there on; where not, below 0.
  const auto price = make_buffer<double>(m);
  RootFinder roots(tree);
  for (const std::size_t v : indices(m)) {
    if (roots.is_root(v)) price[v] = -1.0;
    const bool ended = price[v] >= 0.0;
    const Division by_price = critical[v] > price[v] ? Division::pruning : Division::none;
    division[v] = ended ? by_price : choices[v].division;
    if (tree.is_leaf(v)) continue;
    const bool ends = !ended && division[v] == Division::pruning;
    price[tree.left(v)] = price[tree.left(v) + 1] = ends ? choices[v].price : price[v];
  }
}

}  // namespace certree
