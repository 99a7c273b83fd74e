// The pruning with the smallest cost plus penalty of its cheapest root fragment, in one pass up.
//
// At every node the best of three decisions is taken. Either the fragment splits the node, and both
// children are solved separately; or the node is a leaf of pruning and fragment; or the node is a
// leaf of the fragment, and the pruning splits it. The third case looks for the pruning below the
// node with the smallest cost + factor sqrt(leaves). As the square root is concave, only prunings
// on the cost-complexity path can be best, so each node needs the breakpoints of its path.
//
// The breakpoints of a node are stored in a few runs, sorted by price, each at least twice as long
// as the next. A breakpoint that is moved by a merge enters a run that is at least half as long
// again, so that all moves take O(m log m), whatever the shape of the tree.
#include <iterator>

#include "prunings/weakest_links.hpp"

namespace certree {
namespace {

// Breakpoints sorted by price, stored as cumulative sums of their costs and leaves.
class BreakpointRun {
 public:
  explicit BreakpointRun(const Breakpoint& breakpoint) : sums_{breakpoint} {}

  std::size_t size() const { return sums_.size(); }
  Breakpoint top() const { return breakpoint(sums_.size() - 1); }
  void pop() { sums_.pop_back(); }

  // Appends a breakpoint. One of the same price as the last is added to it.
  void push(const Breakpoint& breakpoint) {
    Breakpoint sum = breakpoint;
    if (!sums_.empty()) {
      const Breakpoint& last = sums_.back();
      sum = {breakpoint.price, last.cost + breakpoint.cost, last.leaves + breakpoint.leaves};
      if (last.price == breakpoint.price) sums_.pop_back();
    }
    sums_.push_back(sum);
  }

  void merge(const BreakpointRun& other) {
    BreakpointRun merged;
    merged.sums_.reserve(size() + other.size());
    std::size_t i = 0, j = 0;
    for ([[maybe_unused]] const std::size_t k : indices(size() + other.size())) {
      const bool from_this =
          j == other.size() || (i < size() && sums_[i].price < other.sums_[j].price);
      merged.push(from_this ? breakpoint(i++) : other.breakpoint(j++));
    }
    *this = std::move(merged);
  }

  // Returns the summed costs and leaves of the breakpoints above a price.
  Excess sum_above(double price) const {
    const auto next =
        std::upper_bound(sums_.begin(), sums_.end(), price,
                         [](double low, const Breakpoint& high) { return low < high.price; });
    const Breakpoint &total = sums_.back(), none{0.0, 0.0, 0.0};
    const Breakpoint& up_to_price = next == sums_.begin() ? none : *(next - 1);
    return {total.cost - up_to_price.cost, total.leaves - up_to_price.leaves};
  }

 private:
  BreakpointRun() = default;
  Breakpoint breakpoint(std::size_t i) const {
    const Breakpoint& sum = sums_[i];
    if (i == 0) return sum;
    return {sum.price, sum.cost - sums_[i - 1].cost, sum.leaves - sums_[i - 1].leaves};
  }

  std::vector<Breakpoint> sums_;
};

// The runs of breakpoints of every node, as weakest_links() needs them.
class BreakpointRuns {
 public:
  explicit BreakpointRuns(std::size_t n_nodes) : runs_(n_nodes) {}

  const std::vector<BreakpointRun>& operator[](std::size_t v) const { return runs_[v]; }
  bool empty(std::size_t v) const { return runs_[v].empty(); }
  Breakpoint top(std::size_t v) { return highest_run(v)->top(); }

  void pop(std::size_t v) {
    const auto run = highest_run(v);
    run->pop();
    if (run->size() == 0) runs_[v].erase(run);
  }

  // The new breakpoint has the highest price of the node, so it can be appended to any run.
  void push(std::size_t v, const Breakpoint& breakpoint) {
    if (empty(v))
      runs_[v].emplace_back(breakpoint);
    else
      runs_[v][0].push(breakpoint);
  }

  // Moves the runs of the children l and l + 1 to v, and merges runs until each is at least twice
  // as long as the next.
  void join(std::size_t v, std::size_t l) {
    std::vector<BreakpointRun> runs = std::move(runs_[l]), others = std::move(runs_[l + 1]);
    if (runs.size() < others.size()) std::swap(runs, others);
    std::move(others.begin(), others.end(), std::back_inserter(runs));
    std::sort(runs.begin(), runs.end(),
              [](const BreakpointRun& a, const BreakpointRun& b) { return a.size() > b.size(); });
    for (std::size_t i = runs.size(); i-- > 1;) {
      if (runs[i - 1].size() >= 2 * runs[i].size()) continue;
      runs[i - 1].merge(runs[i]);
      runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    runs_[v] = std::move(runs);
  }

 private:
  std::vector<BreakpointRun>::iterator highest_run(std::size_t v) {
    return std::max_element(runs_[v].begin(), runs_[v].end(),
                            [](const BreakpointRun& a, const BreakpointRun& b) {
                              return a.top().price < b.top().price;
                            });
  }

  std::vector<std::vector<BreakpointRun>> runs_;
};

// The best decision at a node.
struct Choice {
  double value;       // cost plus penalty, minus the cost of the node as a leaf
  Division division;  // of the node
  double price;       // if only the pruning splits the node: the price of a leaf by which it does
};

class SquareRootSearch {
 public:
  // Finds the pruning with the smallest cost + factor sqrt(leaves) + constant on the path with
  // these breakpoints, which ends at `smallest`. Returns it, or `best` if it is not better.
  //
  // Between the sizes of two prunings of the path, sqrt(leaves) lies above its chord. The best
  // pruning for the chord is the one whose price is the chord's slope. Its value by the chord is a
  // lower bound for all prunings between the two, so that few of them have to be evaluated.
  Choice find(const std::vector<BreakpointRun>& runs, const Excess& smallest, double factor,
              double constant, Choice best) {
    const auto evaluate = [&](double price) {
      count_steps(1 + runs.size());
      Excess pruning = smallest;
      for (const BreakpointRun& run : runs) {
        const Excess above = run.sum_above(price);
        pruning.cost -= above.cost;
        pruning.leaves += above.leaves;
      }
      const double value = pruning.cost + (factor * std::sqrt(pruning.leaves) + constant);
      if (value < best.value) best = {value, Division::pruning, price};
      return pruning;
    };
    const Excess last = evaluate(std::numeric_limits<double>::max());
    open_.assign(1, {evaluate(0.0), last});
    while (!open_.empty()) {
      const auto [large, small] = open_.back();
      open_.pop_back();
      if (large.leaves == small.leaves) continue;
      const double root = std::sqrt(small.leaves);
      const double slope = factor / (std::sqrt(large.leaves) + root);
      const Excess middle = evaluate(slope);
      if (middle.leaves >= large.leaves || middle.leaves <= small.leaves)
        continue;  // one of the two ends is best for the chord
      const double chord = factor * root + slope * (middle.leaves - small.leaves);
      if (middle.cost + (chord + constant) >= best.value) continue;
      open_.emplace_back(large, middle);
      open_.emplace_back(middle, small);
    }
    return best;
  }

 private:
  std::vector<std::pair<Excess, Excess>> open_;  // pairs of prunings to search between
};

}  // namespace

void fragment_pruning(Shape tree, const FragmentPenalty& penalty, std::span<Division> division) {
  const std::size_t m = tree.size();
  const auto choices = make_buffer<Choice>(m);
  const auto critical = make_buffer<double>(m);
  BreakpointRuns runs(m);
  SquareRootSearch search;
  const auto as_leaf = [&](std::size_t v) {
    return Choice{penalty.size_penalty[v] + penalty.node_penalty[v], Division::none, 0.0};
  };
  for (const std::size_t v : indices(m))
    if (tree.is_leaf(v)) choices[v] = as_leaf(v);
  const auto choose = [&](std::size_t v, const Excess& below) {
    const std::size_t l = tree.left(v);
    Choice best = as_leaf(v);
    const double split = choices[l].value + choices[l + 1].value + penalty.gains.cost[v];
    if (split < best.value) best = {split, Division::fragment, 0.0};
    const Excess smallest{below.cost, 1.0 + below.leaves - penalty.chain_leaves[v]};
    choices[v] =
        search.find(runs[v], smallest, penalty.size_penalty[v], penalty.node_penalty[v], best);
  };
  weakest_links(tree, penalty.gains, runs, choose, {critical.get(), m});
  // Below a leaf of the fragment: the price by which the pruning is taken; at other nodes -1.
  const auto price = make_buffer<double>(m);
  RootFinder roots(tree);
  for (const std::size_t v : indices(m)) {
    if (roots.is_root(v)) price[v] = -1.0;
    const bool is_below_fragment = price[v] >= 0.0;
    const Division by_price = critical[v] > price[v] ? Division::pruning : Division::none;
    division[v] = is_below_fragment ? by_price : choices[v].division;
    if (tree.is_leaf(v)) continue;
    const bool is_fragment_leaf = !is_below_fragment && division[v] == Division::pruning;
    price[tree.left(v)] = price[tree.left(v) + 1] = is_fragment_leaf ? choices[v].price : price[v];
  }
}

}  // namespace certree
