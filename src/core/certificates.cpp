#include "certificates.hpp"

namespace certree {

void log_masses(Shape tree, std::span<const std::int32_t> label, const LabelledPriors& priors,
                std::span<double> mass) {
  constexpr std::int32_t kMixed = -1;
  const std::size_t m = tree.size();
  const auto common = make_buffer<std::int32_t>(m);  // label of all leaves below, or kMixed
  for (const std::size_t v : indices_down(m)) {
    const std::size_t l = tree.left(v);
    if (tree.is_leaf(v))
      common[v] = label[v];
    else
      common[v] = common[l] == common[l + 1] ? common[l] : kMixed;
  }
  const auto below = make_buffer<double>(m);  // log mass at or below each node
  for (std::size_t j = 0; j < mass.size(); ++j) {
    const double* const log_stop = priors.log_stop.row(j);
    const double* const log_split = priors.log_split.row(j);
    for (const std::size_t v : indices_down(m)) {
      const std::size_t l = tree.left(v);
      const double split = tree.is_leaf(v) ? -kInfinity : log_split[v] + (below[l] + below[l + 1]);
      if (common[v] == kMixed) {
        below[v] = split;
        continue;
      }
      const double stop = log_stop[v] + priors.log_label.row(j * m + v)[common[v]];
      const double larger = std::max(stop, split), smaller = std::min(stop, split);
      below[v] = smaller == -kInfinity ? larger : larger + std::log1p(std::exp(smaller - larger));
    }
    mass[j] = below[0];
  }
}

namespace {

// A Poisson process whose number of events is required to lie between bounds at certain times.
// Holds the probability of each number of events at the current time together with having met all
// bounds so far.
class BoundedPoisson {
 public:
  // n: the largest number of events.
  explicit BoundedPoisson(std::size_t n)
      : log_factorial_(make_buffer<double>(n + 1)),
        now_(make_buffer<double>(n + 1)),
        next_(make_buffer<double>(n + 1)),
        step_(make_buffer<double>(n + 1)) {
    for (const std::size_t k : indices(n + 1))
      log_factorial_[k] = k == 0 ? 0 : log_factorial_[k - 1] + std::log(static_cast<double>(k));
    now_[0] = 1;
  }

  // Advances the time by the interval in which `expected` events are expected; after it the number
  // of events must lie in least, ..., most.
  void advance(double expected, std::size_t least, std::size_t most) {
    const std::size_t n_steps = likely_steps(expected, most - first_);
    fill(std::span(&next_[least], most - least + 1), 0.0);
    count_steps((most - least + 1) * n_steps);
    for (std::size_t d = 0; d < n_steps; ++d) {
      const double probability = step_[d];
      const std::size_t from = std::max(first_ + d, least), to = std::min(last_ + d, most);
      for (std::size_t k = from; k <= to; ++k) next_[k] += probability * now_[k - d];
    }
    now_.swap(next_);
    first_ = least, last_ = most;
  }

  // Returns the probability of having met all bounds given that there are n events now, when n are
  // expected: now_[n] divided by the Poisson probability of n.
  double condition_on(std::size_t n) const {
    const auto events = static_cast<double>(n);
    return now_[n] * std::exp(events - events * std::log(events) + log_factorial_[n]);
  }

 private:
  // Writes the probabilities of 0, 1, ... events in an interval to step_, and returns how many it
  // wrote. Negligible ones are left out, which can only lower the result.
  std::size_t likely_steps(double expected, std::size_t most) {
    constexpr double kNegligible = 1e-30;
    const double log_expected = std::log(expected);
    std::size_t d = 0;
    for (; d <= most; ++d) {
      const auto events = static_cast<double>(d);
      step_[d] = d == 0 ? std::exp(-expected)
                        : std::exp(events * log_expected - expected - log_factorial_[d]);
      if (events > expected && step_[d] < kNegligible) break;
    }
    return d;
  }

  Buffer<double> log_factorial_, now_, next_, step_;
  std::size_t first_ = 0, last_ = 0;
};

}  // namespace

double order_statistics_probability(std::span<const double> lower, std::span<const double> upper) {
  // n ordered uniform draws are distributed as the times of a Poisson process that has n events at
  // time 1. Counting from k = 0, the k-th draw lies in its interval if there are at most k events
  // at lower[k], and at least k + 1 at upper[k].
  const std::size_t n = lower.size();
  BoundedPoisson events(n);
  double now = 0;
  for (std::size_t i = 0, j = 0; j < n;) {
    const bool is_lower = i < n && lower[i] <= upper[j];
    const double time = is_lower ? lower[i] : upper[j];
    const std::size_t least = is_lower ? j : j + 1;
    if (least > i) return 0;
    events.advance(static_cast<double>(n) * (time - now), least, i);
    now = time;
    (is_lower ? i : j) += 1;
  }
  events.advance(static_cast<double>(n) * (1 - now), n, n);
  return events.condition_on(n);
}

}  // namespace certree
