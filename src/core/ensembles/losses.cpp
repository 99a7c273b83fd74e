// Rows are taken block by block, so that what is made of a block stays in the cache.
#include "ensembles/losses.hpp"

#include "interrupt.hpp"
#include "numbers.hpp"

namespace certree {
namespace {

constexpr std::size_t kBlock = 1024;

// Rows first, ..., first + n - 1.
struct Block {
  std::int64_t first;
  std::size_t n;
};

CERTREE_WIDE void two_classes(const std::int32_t* y, const double* score, std::size_t n,
                              double least, double* gradient, double* hessian) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const double e = exp_minus(std::abs(score[i]));
    const double share = (score[i] < 0.0 ? e : 1.0) / (1.0 + e), variance = share * (1.0 - share);
    gradient[i] = share - static_cast<double>(y[i]);
    hessian[i] = variance > least ? variance : least;
  }
}

CERTREE_WIDE void more_classes(const std::int32_t* y, const Table<const double>& scores,
                               const Block& rows, double least, const Table<double>& gradient,
                               const Table<double>& hessian) noexcept {
  const auto n_classes = static_cast<std::int32_t>(scores.n_rows);
  const double factor = n_classes / (n_classes - 1.0);
  std::array<double, kBlock> most, sum;
  std::copy_n(scores.row(0) + rows.first, rows.n, most.data());
  for (std::int32_t k = 1; k < n_classes; ++k) {
    const double* const score = scores.row(k) + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) most[i] = score[i] > most[i] ? score[i] : most[i];
  }
  sum.fill(0.0);
  for (std::int32_t k = 0; k < n_classes; ++k) {
    const double* const score = scores.row(k) + rows.first;
    double* const part = gradient.row(k) + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) sum[i] += part[i] = exp_minus(most[i] - score[i]);
  }
  for (std::int32_t k = 0; k < n_classes; ++k) {
    double* const part = gradient.row(k) + rows.first;
    double* const second = hessian.row(k) + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) {
      const double share = part[i] / sum[i], variance = share * (1.0 - share);
      second[i] = (variance > least ? variance : least) * factor;
      part[i] = share - (y[i] == k ? 1.0 : 0.0);
    }
  }
}

}  // namespace

void log_loss_slopes(std::span<const std::int32_t> y, Table<const double> scores, double least,
                     Table<double> gradient, Table<double> hessian) {
  const std::size_t n = y.size();
  for (std::size_t first = 0; first < n; first += kBlock) {
    const Block rows{static_cast<std::int64_t>(first), std::min(kBlock, n - first)};
    spend(rows.n * static_cast<std::size_t>(scores.n_rows));
    const std::int32_t* const classes = y.data() + first;
    if (scores.n_rows == 1)
      two_classes(classes, scores.data + first, rows.n, least, gradient.data + first,
                  hessian.data + first);
    else
      more_classes(classes, scores, rows, least, gradient, hessian);
  }
}

}  // namespace certree
