// The up pass of a law over prunings: what is worth splitting, for several temperatures at once.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "core.hpp"

// Compiles a function once more for processors with wider registers, and picks when loading. The
// bits do not depend on it: nothing is contracted, and fma is one rounding everywhere.
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && defined(__x86_64__) && \
    defined(__GLIBC__)
#define CERTREE_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CERTREE_WIDE
#endif
#if defined(__GNUC__)
#define CERTREE_INLINE inline __attribute__((always_inline))
#else
#define CERTREE_INLINE inline
#endif

namespace certree {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// -- exp and log in plain arithmetic, so that loops over lanes are vectorised
// --------------------------

// Odd and even powers are summed apart: neither sum waits for the other.
template <std::size_t n>
CERTREE_INLINE double polynomial(const std::array<double, n>& coefficient, double x) {
  const double square = x * x;
  const auto sum = [&]<std::size_t... i>(std::index_sequence<i...>) {
    double part[2] = {coefficient[n - 1], coefficient[n - 2]};
    ((part[i % 2] = part[i % 2] * square + coefficient[n - 3 - i]), ...);
    return part[1 - n % 2] + x * part[n % 2];
  };
  return sum(std::make_index_sequence<n - 2>());
}

// exp(-a) for a >= 0, right to a unit or two in the last place; 0 where it is below 1e-307.
CERTREE_INLINE double exp_minus(double a) {
  constexpr auto series = [] {
    std::array<double, 14> c{1.0};
    for (std::size_t i = 1; i < c.size(); ++i) c[i] = c[i - 1] / static_cast<double>(i);
    return c;
  }();
  constexpr double kLog2E = 0x1.71547652b82fep+0, kShift = 0x1.8p52;
  constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;
  const double shifted = (a < 708.0 ? a : 708.0) * kLog2E + kShift;  // k in the last bits
  const double k = shifted - kShift;
  const double r = (k * kLn2High - (a < 708.0 ? a : 708.0)) + k * kLn2Low;
  const auto scale = std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0) -
                                           (std::bit_cast<std::uint64_t>(shifted) << 52));
  return a < 708.0 ? polynomial(series, r) * scale : 0.0;
}

// log((1 + s) / (1 - s)) for |s| <= 0.1716.
CERTREE_INLINE double log_ratio(double s) {
  constexpr auto series = [] {
    std::array<double, 11> c{};
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = 2.0 / static_cast<double>(2 * i + 1);
    return c;
  }();
  return s * polynomial(series, s * s);
}

constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// log(1 + e) for 0 <= e <= 1, in relative precision.
CERTREE_INLINE double log_one_plus(double e) {
  const bool large = e > 0.41421356;
  const double s = (large ? e - 1.0 : e) / (large ? e + 3.0 : e + 2.0);
  return log_ratio(s) + (large ? kLn2 : 0.0);
}

// log x for normal numbers x > 0.
CERTREE_INLINE double log_positive(double x) {
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E00000000u, kMantissa = 0x000FFFFFFFFFFFFFu;
  constexpr double kShift = 0x1.8p52;
  // x = 2^k m with m between the roots of 1/2 and 2; k is never negative in its biased form.
  const std::uint64_t offset = std::bit_cast<std::uint64_t>(x) + (0x3FF0000000000000u - kRootHalf);
  const std::uint64_t biased = offset >> 52;
  const auto m = std::bit_cast<double>((offset & kMantissa) + kRootHalf);
  const double k = std::bit_cast<double>(std::bit_cast<std::uint64_t>(kShift) + biased) - kShift;
  return log_ratio((m - 1.0) / (m + 1.0)) + (k - 1023.0) * kLn2;
}

// -- the up pass
// -----------------------------------------------------------------------------------

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
        rest_(make_buffer<double>(lanes(terms.n_nodes))),
        total_(make_buffer<double>(lanes(std::int64_t{terms.n_nodes} * terms.n_terms))) {
    const auto n_terms = static_cast<std::size_t>(terms.n_terms);
    for (std::int32_t node = terms.n_nodes - 1; node >= 0; --node) {
      const auto v = static_cast<std::size_t>(node);
      if (terms.left[v] != kLeaf) {
        inner_.push_back(node);
        continue;
      }
      std::fill_n(rest_.get() + v * kLanes, kLanes, terms.stop[v]);
      std::fill_n(total_.get() + v * n_terms * kLanes, n_terms * kLanes, 0.0);
    }
  }

  // theta: (n_terms, kLanes). odds: (n_nodes, kLanes) exp(-|x|) with the sign of x, see Odds;
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
    for (auto f = static_cast<std::size_t>(terms_.n_terms); f-- > 0;)
      sum = std::fma(theta[f * kLanes + lane], root[f] + total_[f * kLanes + lane], sum);
    return sum;
  }

 private:
  static std::int64_t lanes(std::int64_t n) { return n * static_cast<std::int64_t>(kLanes); }

  template <Rule rule>
  CERTREE_INLINE void run_rule(const double* theta, double* odds, double* log_odds) {
    switch (terms_.n_terms) {
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
  template <Rule rule, int kTerms>
  CERTREE_INLINE void run_fixed(const double* theta, double* odds, double* log_odds) {
    const auto n_terms = static_cast<std::size_t>(kTerms > 0 ? kTerms : terms_.n_terms);
    double* const total = total_.get();
    double* const rest = rest_.get();
    for (const std::int32_t node : inner_) {
      const auto v = static_cast<std::size_t>(node);
      const auto l = static_cast<std::size_t>(terms_.left[v]);
      const double* gain = terms_.gains + v * n_terms;
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
  Buffer<double> rest_;              // (n_nodes, kLanes) c
  Buffer<double> total_;             // (n_nodes, n_terms, kLanes) d
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
