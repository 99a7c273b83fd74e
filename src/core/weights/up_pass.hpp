// The up pass of a law over prunings: what is worth splitting, for several temperatures at once.
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
// Lanes are laws with different theta. They do not touch each other, so a law has the same bits in
// any lane.
template <std::size_t kLanes>
class UpPass {
 public:
  explicit UpPass(const Terms& terms)
      : terms_(terms),
        rest_(make_buffer<double>(terms.tree.size(), kLanes)),
        total_(make_buffer<double>(terms.tree.size(), terms.n_terms(), kLanes)) {
    const std::size_t n_terms = terms.n_terms();
    for (const std::size_t v : turns_down(terms.tree.size(), n_terms * kLanes)) {
      if (!terms.tree.is_leaf(v)) {
        inner_.push_back(static_cast<std::int32_t>(v));
        continue;
      }
      std::fill_n(rest_.get() + v * kLanes, kLanes, terms.stop[v]);
      std::fill_n(total_.get() + v * n_terms * kLanes, n_terms * kLanes, 0.0);
    }
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
  // F + d.
  double evidence(const double* theta, const double* root, std::size_t lane) const {
    double sum = rest_[lane];
    for (std::size_t f = terms_.n_terms(); f-- > 0;)
      sum = std::fma(theta[f * kLanes + lane], root[f] + total_[f * kLanes + lane], sum);
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
    double* const total = total_.get();
    double* const rest = rest_.get();
    for (const std::size_t i_node : turns(inner_.size(), n_terms * kLanes)) {
      const auto v = static_cast<std::size_t>(inner_[i_node]);
      const std::size_t l = terms_.tree.left(v);
      const double* gain = gains + v * n_terms;
      const double* d_left = total + l * n_terms * kLanes;
      const double* d_right = d_left + n_terms * kLanes;
      double* d = total + v * n_terms * kLanes;
      // What splitting v as the pruning below does is worth. Whole numbers times one come last, so
      // the sum up to them is exact and a single rounding follows: ties are seen as ties.
      double x[kLanes] = {};
      for (std::size_t f = n_terms; f-- > 0;) {
        for (std::size_t i = 0; i < kLanes; ++i) {
          const std::size_t at = f * kLanes + i;
          d[at] = gain[f] + (d_left[at] + d_right[at]);
          x[i] = std::fma(theta[at], d[at], x[i]);
        }
      }
      if constexpr (rule == Rule::prune)
        prune(x, odds + v * kLanes);
      else
        average(v, x, rest + l * kLanes, rest + v * kLanes, odds + v * kLanes);
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

  CERTREE_INLINE void average(std::size_t v, double* x, const double* rest_below, double* rest,
                              double* odds) const {
    const double stop = terms_.stop[v], split = terms_.split[v];
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double below = (rest_below[i] + rest_below[kLanes + i]) + split;
      const double sum = x[i] + (below - stop);
      x[i] = below == -kInfinity ? -kInfinity : sum;
      const double e = exp_minus(std::abs(x[i]));
      odds[i] = std::copysign(e, x[i]);
      rest[i] = (x[i] > 0.0 ? below : stop) + log_one_plus(e);
    }
  }

  const Terms& terms_;
  std::vector<std::int32_t> inner_;  // nodes that T0 splits, children first
  Buffer<double> rest_;              // (m, kLanes) c
  Buffer<double> total_;             // (m, n_terms, kLanes) d
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
