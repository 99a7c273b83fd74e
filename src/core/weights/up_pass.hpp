// The up pass of a posterior over prunings: what is worth splitting, for several temperatures at
// once.
#pragma once

#include "numbers.hpp"
#include "weights/weights.hpp"

namespace certree {

// With logbeta(v) = own(v) + b(v), a node of chain 1 has b = log(1 + exp(x)) with
// x = b(left) + b(right) - theta . D(v), D being the gain in the terms of own = theta . F.
//
// b may be as large as lambda n, so it is kept as theta . d + c: d sums the gains over the splits
// of one pruning below v, which takes the likelier side of every decision, and c >= 0 is the log of
// what all other prunings add. d holds whole numbers of errors, so nothing is lost when large terms
// cancel on the way up. A pruning is the case c = 0: the same decisions, and nothing but them.
//
// Nodes are visited in postorder, so that c and d are kept for as many nodes as wait for a sibling
// only, in a cache. The larger one of two siblings comes first: at most log2 m nodes wait.
//
// Lanes are posteriors with different theta. They do not touch each other, so a posterior has the
// same bits in any lane.
template <std::size_t kLanes>
class UpPass {
 public:
  explicit UpPass(const Terms& terms)
      : terms_(terms),
        steps_(terms.tree.size() / 2),
        n_slots_(line_up()),
        rest_(make_buffer<double>(n_slots_, kLanes)),
        total_(make_buffer<double>(n_slots_, terms.n_terms(), kLanes)) {
    for (const Step& root : roots_)
      if (terms.tree.is_leaf(static_cast<std::size_t>(root.node)))
        put_leaf(static_cast<std::size_t>(root.node), static_cast<std::size_t>(root.slot));
  }

  // theta: (n_terms, kLanes). odds: (m, kLanes) exp(-|x|) with the sign of x, see Odds;
  // log_odds: the same for x, may be null. Both are left alone at leaves.
  CERTREE_INLINE void run(Rule rule, const double* theta, double* odds, double* log_odds) {
    if (rule == Rule::average)
      run_rule<Rule::average>(theta, odds, log_odds);
    else
      run_rule<Rule::prune>(theta, odds, log_odds);
  }

  // log beta(root) of a lane: c of the root, and theta . (F + d), whose large terms may cancel in
  // F + d. Of several trees the sums over their roots; `root` holds that of F.
  double evidence(const double* theta, const double* root, std::size_t lane) const {
    const auto of_roots = [&](const Buffer<double>& values, std::size_t width, std::size_t f) {
      double sum = 0.0;
      for (const Step& one : roots_)
        sum += values[(static_cast<std::size_t>(one.slot) * width + f) * kLanes + lane];
      return sum;
    };
    double sum = of_roots(rest_, 1, 0);
    for (std::size_t f = terms_.n_terms(); f-- > 0;)
      sum =
          std::fma(theta[f * kLanes + lane], root[f] + of_roots(total_, terms_.n_terms(), f), sum);
    return sum;
  }

 private:
  template <Rule rule>
  CERTREE_INLINE void run_rule(const double* theta, double* odds, double* log_odds) {
    switch (terms_.n_terms()) {
      case 1:
        return run_fixed<rule, 1>(theta, odds, log_odds);
      case 2:
        return run_fixed<rule, 2>(theta, odds, log_odds);
      case 3:
        return run_fixed<rule, 3>(theta, odds, log_odds);
      default:
        return run_fixed<rule, 0>(theta, odds, log_odds);
    }
  }

  // kTerms = 0 stands for a number of terms known at run time only.
  template <Rule rule, std::size_t kTerms>
  CERTREE_INLINE void run_fixed(const double* theta, double* odds, double* log_odds) {
    const std::size_t n_terms = kTerms > 0 ? kTerms : terms_.n_terms();
    const double* const gains = terms_.gains.data;
    for (const std::size_t step : indices(steps_.size(), n_terms * kLanes)) {
      const auto v = static_cast<std::size_t>(steps_[step].node);
      const auto slot = static_cast<std::size_t>(steps_[step].slot);
      put_leaves(v, slot);
      const double* gain = gains + v * n_terms;
      double* const d = total_.get() + slot * n_terms * kLanes;
      const double* const d_second = d + n_terms * kLanes;
      // What splitting v as the pruning below does is worth. Whole numbers times one come last, so
      // the sum up to them is exact and a single rounding follows: ties are seen as ties.
      double x[kLanes] = {};
      for (std::size_t f = n_terms; f-- > 0;) {
        double sum[kLanes];  // apart from d, which the compiler might think it overlaps
        for (std::size_t i = 0; i < kLanes; ++i)
          sum[i] = gain[f] + (d[f * kLanes + i] + d_second[f * kLanes + i]);
        for (std::size_t i = 0; i < kLanes; ++i)
          x[i] = std::fma(theta[f * kLanes + i], sum[i], x[i]);
        std::copy_n(sum, kLanes, d + f * kLanes);
      }
      if constexpr (rule == Rule::prune)
        prune(x, odds + v * kLanes);
      else
        average(v, x, rest_.get() + slot * kLanes, odds + v * kLanes);
      for (std::size_t f = 0; f < n_terms; ++f)
        for (std::size_t i = 0; i < kLanes; ++i)
          d[f * kLanes + i] = x[i] > 0.0 ? d[f * kLanes + i] : 0.0;
      if (log_odds) std::copy_n(x, kLanes, log_odds + v * kLanes);
    }
  }

  static CERTREE_INLINE void prune(double* x, double* odds) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      x[i] = x[i] > 0.0 ? kInfinity : -kInfinity;
      odds[i] = x[i] > 0.0 ? 0.0 : -0.0;
    }
  }

  // rest: of the two children, and then of the node in the place of the first.
  CERTREE_INLINE void average(std::size_t v, double* x, double* rest, double* odds) const {
    const double stop = terms_.stop[v], split = terms_.split[v];
    double below[kLanes], c[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) below[i] = (rest[i] + rest[kLanes + i]) + split;
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double sum = x[i] + (below[i] - stop);
      x[i] = below[i] == -kInfinity ? -kInfinity : sum;
      const double e = exp_minus(std::abs(x[i]));
      odds[i] = std::copysign(e, x[i]);
      c[i] = (x[i] > 0.0 ? below[i] : stop) + log_one_plus(e);
    }
    std::copy_n(c, kLanes, rest);
  }

  // The leaves among the children of v, which nothing was computed for: a single one is smaller
  // than its sibling, and so comes second.
  CERTREE_INLINE void put_leaves(std::size_t v, std::size_t slot) {
    const std::size_t l = terms_.tree.left(v);
    const bool left = terms_.tree.is_leaf(l), right = terms_.tree.is_leaf(l + 1);
    if (left && right) put_leaf(l, slot);
    if (left || right) put_leaf(right ? l + 1 : l, slot + 1);
  }

  CERTREE_INLINE void put_leaf(std::size_t v, std::size_t slot) {
    const std::size_t width = terms_.n_terms() * kLanes;
    std::fill_n(rest_.get() + slot * kLanes, kLanes, terms_.stop[v]);
    std::fill_n(total_.get() + slot * width, width, 0.0);
  }

  // Writes the steps, and returns how many slots they need. What the children of a node leave is in
  // the slot of the node and in the next one.
  std::int32_t line_up() {
    const Shape tree = terms_.tree;
    const std::size_t m = tree.size();
    const auto n_inner = make_buffer<std::int32_t>(m);  // at the node or below it
    for (const std::size_t v : indices_down(m))
      n_inner[v] = tree.is_leaf(v) ? 0 : 1 + n_inner[tree.left(v)] + n_inner[tree.left(v) + 1];
    const auto slot = make_buffer<std::int32_t>(m);
    std::int32_t* const end = n_inner.get();  // of the steps below a node that has been reached
    std::int32_t last = -1, n_steps = 0;
    RootFinder roots(tree);
    for (const std::size_t v : indices(m)) {
      if (roots.is_root(v)) {  // what its tree leaves in its slot stays there
        end[v] = n_steps += n_inner[v];
        slot[v] = ++last;
        roots_.push_back({static_cast<std::int32_t>(v), slot[v]});
      }
      if (tree.is_leaf(v)) continue;
      const std::size_t l = tree.left(v), second = n_inner[l] < n_inner[l + 1] ? l : l + 1;
      const std::size_t first = 2 * l + 1 - second;
      const std::int32_t at = end[v] - 1;
      steps_[static_cast<std::size_t>(at)] = {static_cast<std::int32_t>(v), slot[v]};
      end[first] = at - n_inner[second];
      end[second] = at;
      slot[first] = slot[v];
      slot[second] = slot[v] + 1;
      last = std::max(last, slot[second]);
    }
    steps_.resize(static_cast<std::size_t>(n_steps));
    return last + 1;
  }

  // A node, and the slot of what is known of it.
  struct Step {
    std::int32_t node, slot;
  };

  const Terms& terms_;
  std::vector<Step> steps_;  // at the nodes that have children, these first
  std::vector<Step> roots_;
  std::int32_t n_slots_;
  Buffer<double> rest_;   // (n_slots, kLanes) c
  Buffer<double> total_;  // (n_slots, n_terms, kLanes) d
};

// A signed exp(-|x|) holds both probabilities of a decision to full precision.
struct Odds {
  double split, stop;
  CERTREE_INLINE explicit Odds(double odds) {
    const double e = std::abs(odds);
    const double likelier = 1.0 / (1.0 + e), rarer = e * likelier;
    const bool splits = std::copysign(1.0, odds) > 0.0;
    split = splits ? likelier : rarer;
    stop = splits ? rarer : likelier;
  }
};

}  // namespace certree
