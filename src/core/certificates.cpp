// The prior mass of a classifier: of all prunings that label every point as it does; and the chance
// that draws in order stay between two boundaries.
#include "certificates.hpp"

namespace certree {

void log_masses(Shape tree, std::span<const std::int32_t> label, const LabelledPriors& priors,
                std::span<double> mass) {
  constexpr std::int32_t kMixed = -1;
  const std::size_t m = tree.size();
  const auto common = make_buffer<std::int32_t>(m);  // the label of all leaves below
  for (const std::size_t v : indices_down(m)) {
    const std::size_t l = tree.left(v);
    if (tree.is_leaf(v))
      common[v] = label[v];
    else
      common[v] = common[l] == common[l + 1] ? common[l] : kMixed;
  }
  const auto below = make_buffer<double>(m);
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

// Probabilities that a Poisson process has had so many events, among those numbers that it may
// have.
class Events {
 public:
  explicit Events(std::size_t n)
      : log_factorial_(make_buffer<double>(n + 1)),
        now_(make_buffer<double>(n + 1)),
        next_(make_buffer<double>(n + 1)),
        step_(make_buffer<double>(n + 1)) {
    for (const std::size_t k : indices(n + 1))
      log_factorial_[k] = k == 0 ? 0 : log_factorial_[k - 1] + std::log(static_cast<double>(k));
    now_[0] = 1;
  }

  // Goes on while so many events are expected, after which there must be least .. most.
  void advance(double expected, std::size_t least, std::size_t most) {
    const std::size_t n_steps = likely_steps(expected, most - first_);
    fill(std::span(&next_[least], most - least + 1), 0.0);
    count_steps((most - least + 1) * n_steps);
    for (std::size_t d = 0; d < n_steps; ++d) {
      const double chance = step_[d];
      const std::size_t from = std::max(first_ + d, least), to = std::min(last_ + d, most);
      for (std::size_t k = from; k <= to; ++k) next_[k] += chance * now_[k - d];
    }
    now_.swap(next_);
    first_ = least, last_ = most;
  }

  // Given that there are n in all, of which n were expected.
  double given_all(std::size_t n) const {
    const auto all = static_cast<double>(n);
    return now_[n] * std::exp(all - all * std::log(all) + log_factorial_[n]);
  }

 private:
  // Probabilities of 0, 1, ... events; what is left out can only lower the chance that is asked
  // for.
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

double chance_in_order(std::span<const double> lower, std::span<const double> upper) {
  // Uniform draws are the times of a Poisson process, given that it has had n events at time 1.
  // Their number is asked at both ends of every interval: at lower[k] at most k, at upper[k] more.
  const std::size_t n = lower.size();
  Events events(n);
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
  return events.given_all(n);
}

}  // namespace certree
