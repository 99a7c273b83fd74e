// The pass from the leaves up that computes the odds of splitting each node, for several posteriors
// of a family at once.
#pragma once

#include "numbers.hpp"
#include "weights/weights.hpp"

namespace certree {

// Write log beta(v) = s(v) + b(v), in the notation of PosteriorFamily. Without stop and split, b(v)
// = log(1 + exp(x)) with the log odds x = b(left) + b(right) + theta . D(v).
//
// b may be as large as lambda n, so it is stored as theta . d + c. Here d is the sum of gains over
// the splits of one pruning below v, which takes the likelier decision at every node, and c is what
// the other prunings, stop and split add to that. With errors as the first term d holds integers,
// so nothing is lost when large terms cancel. PruningMode::single is the case c = 0.
//
// Nodes are visited in postorder, the sibling with more nodes below it first. Then at most log2(m)
// nodes wait for their sibling at any time, and only these need a slot for their c and d: the slots
// stay in the cache.
//
// Lanes are posteriors with different theta, computed together by vector instructions. No lane
// reads another, so a posterior is the same to the bit in any lane.
template <std::size_t kLanes>
class UpwardPass {
 public:
  explicit UpwardPass(const PosteriorFamily& family)
      : family_(family),
        visits_(family.tree.size() / 2),
        n_slots_(plan_visits()),
        rest_(make_buffer<double>(n_slots_, kLanes)),
        total_(make_buffer<double>(n_slots_, family.n_terms(), kLanes)) {
    for (const Visit& root : roots_)
      if (family.tree.is_leaf(static_cast<std::size_t>(root.node)))
        fill_leaf_slot(static_cast<std::size_t>(root.node), static_cast<std::size_t>(root.slot));
  }

  // Computes the odds of all inner nodes for the posteriors of theta, (n_terms, kLanes).
  // odds: (m, kLanes) exp(-|x|) with the sign of the log odds x, see Decision; log_odds: (m,
  // kLanes) x itself, or null. Leaves are not written to.
  CERTREE_INLINE void run(PruningMode mode, const double* theta, double* odds, double* log_odds) {
    if (mode == PruningMode::average)
      run_mode<PruningMode::average>(theta, odds, log_odds);
    else
      run_mode<PruningMode::single>(theta, odds, log_odds);
  }

  // Returns log beta(root) of a lane after run(), or its sum over the roots of several trees: c +
  // theta . (F + d), as large terms of F and d may cancel. root: (n_terms,) F, summed over roots.
  double log_evidence(const double* theta, const double* root, std::size_t lane) const {
    const auto sum_over_roots = [&](const Buffer<double>& values, std::size_t width,
                                    std::size_t f) {
      double sum = 0.0;
      for (const Visit& visit : roots_)
        sum += values[(static_cast<std::size_t>(visit.slot) * width + f) * kLanes + lane];
      return sum;
    };
    double sum = sum_over_roots(rest_, 1, 0);
    for (std::size_t f = family_.n_terms(); f-- > 0;)
      sum = std::fma(theta[f * kLanes + lane],
                     root[f] + sum_over_roots(total_, family_.n_terms(), f), sum);
    return sum;
  }

 private:
  template <PruningMode mode>
  CERTREE_INLINE void run_mode(const double* theta, double* odds, double* log_odds) {
    switch (family_.n_terms()) {
      case 1:
        return run_terms<mode, 1>(theta, odds, log_odds);
      case 2:
        return run_terms<mode, 2>(theta, odds, log_odds);
      case 3:
        return run_terms<mode, 3>(theta, odds, log_odds);
      default:
        return run_terms<mode, 0>(theta, odds, log_odds);
    }
  }

  // kTerms: number of terms at compile time; 0 if it is larger than 3.
  template <PruningMode mode, std::size_t kTerms>
  CERTREE_INLINE void run_terms(const double* theta, double* odds, double* log_odds) {
    const std::size_t n_terms = kTerms > 0 ? kTerms : family_.n_terms();
    const double* const gains = family_.gains.data;
    for (const std::size_t i_visit : indices(visits_.size(), n_terms * kLanes)) {
      const auto v = static_cast<std::size_t>(visits_[i_visit].node);
      const auto slot = static_cast<std::size_t>(visits_[i_visit].slot);
      fill_leaf_slots(v, slot);
      const double* gain = gains + v * n_terms;
      double* const d = total_.get() + slot * n_terms * kLanes;
      const double* const d_second = d + n_terms * kLanes;
      // x = theta . (D(v) + d(left) + d(right)). The term of the errors, which are integers, comes
      // last and its fma rounds once, so that ties are recognised as ties.
      double x[kLanes] = {};
      for (std::size_t f = n_terms; f-- > 0;) {
        double sum[kLanes];  // not in d: the compiler would have to assume that it overlaps gain
        for (std::size_t i = 0; i < kLanes; ++i)
          sum[i] = gain[f] + (d[f * kLanes + i] + d_second[f * kLanes + i]);
        for (std::size_t i = 0; i < kLanes; ++i)
          x[i] = std::fma(theta[f * kLanes + i], sum[i], x[i]);
        std::copy_n(sum, kLanes, d + f * kLanes);
      }
      if constexpr (mode == PruningMode::single)
        decide_single(x, odds + v * kLanes);
      else
        decide_average(v, x, rest_.get() + slot * kLanes, odds + v * kLanes);
      for (std::size_t f = 0; f < n_terms; ++f)
        for (std::size_t i = 0; i < kLanes; ++i)
          d[f * kLanes + i] = x[i] > 0.0 ? d[f * kLanes + i] : 0.0;
      if (log_odds) std::copy_n(x, kLanes, log_odds + v * kLanes);
    }
  }

  // Replaces x by the decision of the best pruning, +inf or -inf.
  static CERTREE_INLINE void decide_single(double* x, double* odds) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      x[i] = x[i] > 0.0 ? kInfinity : -kInfinity;
      odds[i] = x[i] > 0.0 ? 0.0 : -0.0;
    }
  }

  // Adds c, stop and split to x, and computes the odds. rest: (2, kLanes) c of the two children; c
  // of the node replaces that of the first.
  CERTREE_INLINE void decide_average(std::size_t v, double* x, double* rest, double* odds) const {
    const double stop = family_.stop[v], split = family_.split[v];
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

  // Fills the slots of those children of v that are leaves: leaves are not visited. If only one
  // child is a leaf, it has fewer nodes below it than its sibling, and therefore the second slot.
  CERTREE_INLINE void fill_leaf_slots(std::size_t v, std::size_t slot) {
    const std::size_t l = family_.tree.left(v);
    const bool left = family_.tree.is_leaf(l), right = family_.tree.is_leaf(l + 1);
    if (left && right) fill_leaf_slot(l, slot);
    if (left || right) fill_leaf_slot(right ? l + 1 : l, slot + 1);
  }

  CERTREE_INLINE void fill_leaf_slot(std::size_t v, std::size_t slot) {
    const std::size_t width = family_.n_terms() * kLanes;
    std::fill_n(rest_.get() + slot * kLanes, kLanes, family_.stop[v]);
    std::fill_n(total_.get() + slot * width, width, 0.0);
  }

  // Writes visits_ and roots_, and returns the number of slots. The results of the two children of
  // a node are in the slot of the node and in the next one.
  std::int32_t plan_visits() {
    const Shape tree = family_.tree;
    const std::size_t m = tree.size();
    const auto n_inner = make_buffer<std::int32_t>(m);  // inner nodes at or below each node
    for (const std::size_t v : indices_down(m))
      n_inner[v] = tree.is_leaf(v) ? 0 : 1 + n_inner[tree.left(v)] + n_inner[tree.left(v) + 1];
    const auto slot = make_buffer<std::int32_t>(m);
    // Overwrites n_inner[v] by the end of the visits at or below v, once v has been reached.
    std::int32_t* const end = n_inner.get();
    std::int32_t last_slot = -1, n_visits = 0;
    RootFinder roots(tree);
    for (const std::size_t v : indices(m)) {
      if (roots.is_root(v)) {  // a slot that no later tree uses: log_evidence() reads it
        end[v] = n_visits += n_inner[v];
        slot[v] = ++last_slot;
        roots_.push_back({static_cast<std::int32_t>(v), slot[v]});
      }
      if (tree.is_leaf(v)) continue;
      const std::size_t l = tree.left(v), second = n_inner[l] < n_inner[l + 1] ? l : l + 1;
      const std::size_t first = 2 * l + 1 - second;
      const std::int32_t place = end[v] - 1;
      visits_[static_cast<std::size_t>(place)] = {static_cast<std::int32_t>(v), slot[v]};
      end[first] = place - n_inner[second];
      end[second] = place;
      slot[first] = slot[v];
      slot[second] = slot[v] + 1;
      last_slot = std::max(last_slot, slot[second]);
    }
    visits_.resize(static_cast<std::size_t>(n_visits));
    return last_slot + 1;
  }

  // A node, and the slot of its c and d.
  struct Visit {
    std::int32_t node, slot;
  };

  const PosteriorFamily& family_;
  std::vector<Visit> visits_;  // of the inner nodes, in postorder
  std::vector<Visit> roots_;
  std::int32_t n_slots_;
  Buffer<double> rest_;   // (n_slots, kLanes) c
  Buffer<double> total_;  // (n_slots, n_terms, kLanes) d
};

// The probabilities that a node in the pruning is split or is a leaf, both to full precision. odds:
// exp(-|x|) with the sign of the log odds x of splitting.
struct Decision {
  double split, stop;
  CERTREE_INLINE explicit Decision(double odds) {
    const double e = std::abs(odds);
    const double likelier = 1.0 / (1.0 + e), rarer = e * likelier;
    const bool splits = std::copysign(1.0, odds) > 0.0;
    split = splits ? likelier : rarer;
    stop = splits ? rarer : likelier;
  }
};

}  // namespace certree
