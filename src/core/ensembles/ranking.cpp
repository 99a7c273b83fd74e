// Documents of a query are put in order first, so that loops over pairs go along columns.
#include "ensembles/ranking.hpp"

#include "ensembles/losses.hpp"
#include "numbers.hpp"
#include "parallel.hpp"

namespace certree {
namespace {

constexpr double kLeastHessian = 1e-7;
// A pair is worth its gains at the places that it has now, and so many times what it would be worth
// at a place of discount 1 beside one of none: where documents will stand is known at the end only,
// and pairs far down tell of the others.
constexpr double kAnywhere = 1.0;

double dcg_of_best(std::vector<double>& gains, std::span<const double> discount, std::size_t at) {
  with_interrupt_checks(8 * gains.size(), std::greater<>(), [&](const auto& is_more) {
    std::sort(gains.begin(), gains.end(), is_more);
  });
  double sum = 0.0;
  for (const std::size_t r : indices(std::min(at, gains.size()))) sum += gains[r] * discount[r];
  return sum;
}

std::size_t limit(std::int64_t at) {
  return at > 0 ? static_cast<std::size_t>(at) : std::numeric_limits<std::size_t>::max();
}

// The documents of a query from the highest score down, those of equal score as they come.
struct Ranked {
  std::vector<std::size_t> row;
  std::vector<double> score, gain;
  // Gradients so far, and what the pairs of one document add.
  std::vector<double> gradient, hessian, first, second;

  void rank(const Queries& queries, std::size_t query, const double* scores) {
    const std::size_t begin = queries.first[query], n = queries.first[query + 1] - begin;
    row.resize(n);
    std::iota(row.begin(), row.end(), begin);
    // Scores beyond float64 may have become NaN.
    const auto known = [&](std::size_t i) {
      return std::isnan(scores[i]) ? -kInfinity : scores[i];
    };
    const auto is_above = [&](std::size_t i, std::size_t j) {
      const double a = known(i), b = known(j);
      return a > b || (a == b && i < j);
    };
    with_interrupt_checks(8 * n, is_above,
                          [&](const auto& above) { std::sort(row.begin(), row.end(), above); });
    score.resize(n);
    gain.resize(n);
    for (const std::size_t r : indices(n)) {
      score[r] = known(row[r]);
      gain[r] = queries.gain[row[r]];
    }
  }
};

// Gradients of the pairs of a document with the n below it; first: by which each is to fall.
CERTREE_SIMD_CLONES void add_pair_gradients(double score, double gain, double discount,
                                            const double* scores, const double* gains,
                                            const double* discounts, std::size_t n, double* first,
                                            double* second) noexcept {
  for (std::size_t j = 0; j < n; ++j) {
    const double apart = score - scores[j], more = gain - gains[j];
    const double e = exp_minus(apart > 0.0 ? apart : 0.0);
    const double probability = (more > 0.0 ? e : 1.0) / (1.0 + e);  // that the order is wrong
    const double worth = (more > 0.0 ? more : -more) * (discount - discounts[j] + kAnywhere);
    first[j] = probability * (more > 0.0 ? worth : -worth);
    const double variance = probability * (1.0 - probability);
    second[j] = worth * (variance > kLeastHessian ? variance : kLeastHessian);
  }
}

void add_pairs(const Queries& queries, Ranked& ranked) {
  const std::size_t n = ranked.row.size();
  for (auto* column : {&ranked.gradient, &ranked.hessian}) column->assign(n, 0.0);
  ranked.first.resize(n);
  ranked.second.resize(n);
  const double *const score = ranked.score.data(), *const gain = ranked.gain.data();
  const double* const discount = queries.discount.data();
  const std::size_t n_first = std::min(n, limit(queries.goal.truncation));
  for (const std::size_t i : indices(n_first, 4 * n)) {
    const std::size_t below = i + 1;
    add_pair_gradients(score[i], gain[i], discount[i], score + below, gain + below,
                       discount + below, n - below, ranked.first.data() + below,
                       ranked.second.data() + below);
    for (std::size_t j = below; j < n; ++j) {
      ranked.gradient[i] -= ranked.first[j];
      ranked.gradient[j] += ranked.first[j];
      ranked.hessian[i] += ranked.second[j];
      ranked.hessian[j] += ranked.second[j];
    }
  }
}

// Queries of which each part has about as many rows.
std::vector<std::size_t> parts_of(const Queries& queries, int n_threads) {
  constexpr std::size_t kRows = 4096;
  const std::size_t n = queries.gain.size();
  const auto most = static_cast<std::size_t>(std::max(n_threads, 1)) * 8;
  const std::size_t n_parts = n_threads > 1 ? std::clamp<std::size_t>(n / kRows, 1, most) : 1;
  std::vector<std::size_t> begins{0};
  for (std::size_t k = 1; k < n_parts; ++k) {
    const auto at = std::ranges::lower_bound(queries.first, n / n_parts * k);
    begins.push_back(static_cast<std::size_t>(at - queries.first.begin()));
  }
  begins.push_back(queries.first.size() - 1);
  return begins;
}

double dcg_of(const Queries& queries, const Ranked& ranked) {
  const std::size_t n = ranked.row.size(), most = std::min(n, limit(queries.goal.at));
  double sum = 0.0;
  for (std::size_t begin = 0, end = 0; begin < most; begin = end) {
    double gains = 0.0, places = 0.0;
    for (; end < n && ranked.score[end] == ranked.score[begin]; ++end) {
      gains += ranked.gain[end];
      places += end < most ? queries.discount[end] : 0.0;
    }
    sum += gains / static_cast<double>(end - begin) * places;
  }
  return sum;
}

}  // namespace

Queries queries_of(const RankingGoal& goal, std::span<const std::int32_t> number,
                   std::span<const double> y) {
  Queries made{goal, {}, std::vector<double>(y.size()), {}, {}};
  std::size_t longest = 0;
  for (const std::size_t i : indices(y.size())) {
    if (i == 0 || number[i] != number[i - 1]) made.first.push_back(i);
    longest = std::max(longest, i + 1 - made.first.back());
    made.gain[i] = std::exp2(y[i]) - 1.0;
  }
  made.first.push_back(y.size());
  for (const std::size_t r : indices(longest))
    made.discount.push_back(1.0 / std::log2(2.0 + static_cast<double>(r)));
  std::vector<double> gains;
  for (std::size_t q = 0; q + 1 < made.first.size(); ++q) {
    const auto begin = made.gain.begin() + static_cast<std::ptrdiff_t>(made.first[q]);
    const auto end = made.gain.begin() + static_cast<std::ptrdiff_t>(made.first[q + 1]);
    gains.assign(begin, end);
    const double best = dcg_of_best(gains, made.discount, limit(goal.truncation));
    const double unit = best > 0.0 ? best : 1.0;
    for (double& gain : std::span(begin, end)) gain /= unit;
    made.best.push_back(dcg_of_best(gains, made.discount, limit(goal.at)) / unit);
  }
  return made;
}

void compute_ranking_gradients(const Queries& queries, const double* score,
                               std::span<const double> weight, int n_threads,
                               std::span<double> gradient, std::span<double> hessian) {
  const std::vector<std::size_t> begins = parts_of(queries, n_threads);
  parallel_for(std::ssize(begins) - 1, n_threads, [&](std::int64_t part) {
    Ranked ranked;
    const auto k = static_cast<std::size_t>(part);
    for (std::size_t q = begins[k]; q < begins[k + 1]; ++q) {
      ranked.rank(queries, q, score);
      add_pairs(queries, ranked);
      const double factor = weight.empty() ? 1.0 : weight[queries.first[q]];
      for (const std::size_t r : indices(ranked.row.size())) {
        gradient[ranked.row[r]] = factor * ranked.gradient[r];
        hessian[ranked.row[r]] = factor * ranked.hessian[r];
      }
    }
  });
  const auto n = static_cast<double>(gradient.size());
  const double mean = sum_of(hessian, {}) / (weight.empty() ? n : sum_of(weight, {}));
  const double unit = mean > 0.0 ? mean : 1.0;
  for (const std::size_t i : indices(gradient.size())) {
    gradient[i] /= unit;
    hessian[i] = std::max(hessian[i] / unit, kLeastHessian);
  }
}

double ranking_loss(const Queries& queries, const double* score, std::span<const double> weight) {
  const std::size_t n = queries.best.size();
  const auto losses = make_buffer<double>(n);
  Ranked ranked;
  for (std::size_t q = 0; q < n; ++q) {
    ranked.rank(queries, q, score);
    const double best = queries.best[q], factor = weight.empty() ? 1.0 : weight[queries.first[q]];
    const double ndcg = best > 0.0 ? dcg_of(queries, ranked) / best : 1.0;
    losses[q] = factor * std::max(1.0 - ndcg, 0.0);
  }
  return sum_of({losses.get(), n}, {});
}

double mean_ranking_loss(const Queries& queries, const double* score,
                         std::span<const double> weight) {
  double total = 0.0;
  for (const std::size_t begin : std::span(queries.first).first(queries.best.size()))
    total += weight.empty() ? 1.0 : weight[begin];
  return ranking_loss(queries, score, weight) / total;
}

}  // namespace certree
