// Rows are taken block by block, so that what is made of a block stays in the cache.
#include "ensembles/losses.hpp"

#include "grow/whole_numbers.hpp"
#include "interrupt.hpp"

namespace certree {
namespace {

constexpr std::size_t kBlock = 1024;
constexpr double kLeastHessian = 1e-7;
// Distances below this part of their mean count as so large where a loss has a kink.
constexpr double kKink = 0.1;

// Rows first, ..., first + n - 1.
struct Block {
  std::int64_t first;
  std::size_t n;
};

// Calls f of one block after the other, whose rows take so many steps each.
template <class F>
void by_blocks(std::size_t n, std::int64_t steps, const F& f) {
  for (std::size_t first = 0; first < n; first += kBlock) {
    const Block rows{static_cast<std::int64_t>(first), std::min(kBlock, n - first)};
    count_steps(static_cast<std::int64_t>(rows.n) * steps);
    f(rows);
  }
}

template <class F>
void by_rows(std::size_t n, std::int64_t steps, const F& f) {
  by_blocks(n, steps, [&](const Block& rows) {
    const auto first = static_cast<std::size_t>(rows.first);
    for (std::size_t i = first; i < first + rows.n; ++i) f(i);
  });
}

// -- classes

CERTREE_SIMD_CLONES void compute_gradients_of_two(const double* y, const double* score,
                                                  std::size_t n, double* gradient,
                                                  double* hessian) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const double e = exp_minus(std::abs(score[i]));
    const double probability = (score[i] < 0.0 ? e : 1.0) / (1.0 + e),
                 variance = probability * (1.0 - probability);
    gradient[i] = probability - y[i];
    hessian[i] = variance > kLeastHessian ? variance : kLeastHessian;
  }
}

// Powers of the scores (n_classes, rows.n), less the largest one of each row, and their sums.
CERTREE_INLINE void take_powers(const Table<const double>& scores, const Block& rows,
                                const Table<double>& power, double* most, double* sum) {
  std::copy_n(scores.row(0) + rows.first, rows.n, most);
  for (std::int64_t k = 1; k < scores.n_rows; ++k) {
    const double* const score = scores.row(k) + rows.first;
    for (std::size_t i = 0; i < rows.n; ++i) most[i] = score[i] > most[i] ? score[i] : most[i];
  }
  std::fill_n(sum, rows.n, 0.0);
  for (std::int64_t k = 0; k < scores.n_rows; ++k) {
    const double* const score = scores.row(k) + rows.first;
    double* const part = power.row(k);
    for (std::size_t i = 0; i < rows.n; ++i) sum[i] += part[i] = exp_minus(most[i] - score[i]);
  }
}

CERTREE_SIMD_CLONES void compute_gradients_of_more(const double* y,
                                                   const Table<const double>& scores,
                                                   const Block& rows, const Table<double>& gradient,
                                                   const Table<double>& hessian) noexcept {
  const auto n_classes = static_cast<double>(scores.n_rows);
  const double factor = n_classes / (n_classes - 1.0);
  std::array<double, kBlock> most, sum;
  const Table<double> power{gradient.data + rows.first, gradient.n_rows, gradient.width};
  take_powers(scores, rows, power, most.data(), sum.data());
  for (std::int64_t k = 0; k < scores.n_rows; ++k) {
    double* const part = power.row(k);
    double* const second = hessian.row(k) + rows.first;
    const auto own = static_cast<double>(k);
    for (std::size_t i = 0; i < rows.n; ++i) {
      const double probability = part[i] / sum[i], variance = probability * (1.0 - probability);
      second[i] = (variance > kLeastHessian ? variance : kLeastHessian) * factor;
      part[i] = probability - (y[i] == own ? 1.0 : 0.0);
    }
  }
}

CERTREE_SIMD_CLONES void losses_of_two(const double* y, const double* score, std::size_t n,
                                       double* loss) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const double wrong = y[i] == 1.0 ? -score[i] : score[i];
    loss[i] = (wrong > 0.0 ? wrong : 0.0) + log_one_plus(exp_minus(std::abs(wrong)));
  }
}

// power: room for (n_classes, kBlock) numbers.
CERTREE_SIMD_CLONES void losses_of_more(const double* y, const Table<const double>& scores,
                                        const Block& rows, const Table<double>& power,
                                        double* loss) noexcept {
  std::array<double, kBlock> most, sum;
  take_powers(scores, rows, power, most.data(), sum.data());
  for (std::size_t i = 0; i < rows.n; ++i) loss[i] = most[i] + log_positive(sum[i]);
  for (std::int64_t k = 0; k < scores.n_rows; ++k) {
    const double* const score = scores.row(k) + rows.first;
    const auto own = static_cast<double>(k);
    for (std::size_t i = 0; i < rows.n; ++i) loss[i] -= y[i] == own ? score[i] : 0.0;
  }
}

// -- numbers

// A quantile of distances, between two of them by the part that is missing; they are moved.
double bend_of(double quantile, std::span<double> distance) {
  const double place = quantile * static_cast<double>(distance.size() - 1);
  double* const at = distance.data() + static_cast<std::size_t>(place);
  double* const end = distance.data() + distance.size();
  // Bits of numbers that are not negative are in the order of these, and those of NaN behind them.
  const auto nearer = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) < std::bit_cast<std::uint64_t>(b);
  };
  with_interrupt_checks(8 * distance.size(), nearer, [&](const auto& is_less) {
    std::nth_element(distance.data(), at, end, is_less);
  });
  const double below = *at;
  if (at + 1 == end) return below;
  const double above = *with_interrupt_checks(distance.size(), nearer, [&](const auto& is_less) {
    return std::min_element(at + 1, end, is_less);
  });
  return below + (above - below) * (place - std::floor(place));
}

struct GradientPair {
  double first, second;
};

void compute_gradients_of_numbers(const ScaledLoss& loss, std::span<const double> y,
                                  const double* score, double* gradient, double* hessian) {
  const auto write = [&](const auto& of) {
    by_rows(y.size(), 4, [&](std::size_t i) {
      const auto [first, second] = of(y[i], score[i]);
      gradient[i] = first;
      hessian[i] = second;
    });
  };
  switch (loss.kind) {
    case LossKind::quantile: {
      // In units of the mean distance, so that Hessians are about 1.
      const double unit = loss.scale;
      if (unit == 0.0) return write([](double, double) { return GradientPair{0.0, 1.0}; });
      return write([unit, q = loss.parameter](double target, double s) {
        const double way = target > s ? -q : target < s ? 1.0 - q : 0.0;
        const double distance = std::abs(target - s), least = kKink * unit;
        return GradientPair{2.0 * unit * way, unit / (distance > least ? distance : least)};
      });
    }
    case LossKind::huber:
      return write([bend = loss.scale](double target, double s) {
        const double above = target - s, distance = std::abs(above);
        if (!(distance > bend)) return GradientPair{-above, 1.0};
        return GradientPair{above > 0.0 ? -bend : bend, std::max(bend / distance, kLeastHessian)};
      });
    case LossKind::poisson:
      return write([](double target, double s) {
        const double mean = std::exp(s);
        return GradientPair{mean - target, std::max(mean, kLeastHessian)};
      });
    case LossKind::gamma:
      return write([](double target, double s) {
        const double ratio = target * std::exp(-s);
        return GradientPair{1.0 - ratio, std::max(ratio, kLeastHessian)};
      });
    case LossKind::tweedie: {
      const double unit = std::max(loss.scale, std::numeric_limits<double>::min());
      return write([unit, p = loss.parameter](double target, double s) {
        const double ahead = std::exp((2.0 - p) * s) / unit;
        const double back = target * std::exp((1.0 - p) * s) / unit;
        return GradientPair{ahead - back,
                            std::max((2.0 - p) * ahead + (p - 1.0) * back, kLeastHessian)};
      });
    }
    default:
      return write([](double target, double s) { return GradientPair{s - target, 1.0}; });
  }
}

void losses_of_numbers(const ScaledLoss& loss, std::span<const double> y, const double* score,
                       double* losses) {
  const auto write = [&](const auto& of) {
    by_rows(y.size(), 4, [&](std::size_t i) { losses[i] = of(y[i], score[i]); });
  };
  switch (loss.kind) {
    case LossKind::quantile:
      return write([q = loss.parameter](double target, double s) {
        return std::max(q * (target - s), (q - 1.0) * (target - s));
      });
    case LossKind::huber:
      return write([bend = loss.scale](double target, double s) {
        const double distance = std::abs(target - s), near = std::min(distance, bend);
        return near * (distance - 0.5 * near);
      });
    case LossKind::poisson:
      return write([](double target, double s) {
        const double least = target > 0.0 ? target * std::log(target) - target : 0.0;
        return least - target * s + std::exp(s);
      });
    case LossKind::gamma:
      return write([](double target, double s) {
        const double ratio = target * std::exp(-s);
        return ratio - 1.0 - std::log(ratio);
      });
    case LossKind::tweedie:
      return write([p = loss.parameter](double target, double s) {
        const double ahead = std::exp((2.0 - p) * s), back = target * std::exp((1.0 - p) * s);
        const double least = std::pow(target, 2.0 - p) / ((p - 1.0) * (2.0 - p));
        return ahead / (2.0 - p) + back / (p - 1.0) - least;
      });
    default:
      return write([](double target, double s) { return 0.5 * (target - s) * (target - s); });
  }
}

}  // namespace

void scale_terms(const Loss& loss, std::span<const double> y, Table<const double> scores,
                 std::span<double> terms) {
  const double* const score = scores.data;
  if (loss.kind == LossKind::tweedie)
    // A row's information in units of the dispersion: gradients in units of its mean do not depend
    // on the unit of the targets.
    by_rows(y.size(), 4,
            [&](std::size_t i) { terms[i] = std::exp((2.0 - loss.parameter) * score[i]); });
  else
    by_rows(y.size(), 1, [&](std::size_t i) { terms[i] = std::abs(y[i] - score[i]); });
}

ScaledLoss scaled(const Loss& loss, std::span<const double> y, Table<const double> scores) {
  if (!has_scale(loss)) return {loss};
  const auto room = make_buffer<double>(y.size());
  const std::span terms(room.get(), y.size());
  scale_terms(loss, y, scores, terms);
  if (loss.kind == LossKind::huber) return {loss, bend_of(loss.parameter, terms)};
  return {loss, sum_of(terms, {}) / static_cast<double>(y.size())};
}

void compute_gradients(const ScaledLoss& loss, std::span<const double> y,
                       Table<const double> scores, Table<double> gradient, Table<double> hessian) {
  if (loss.kind != LossKind::classes)
    return compute_gradients_of_numbers(loss, y, scores.data, gradient.data, hessian.data);
  by_blocks(y.size(), 4 * scores.n_rows, [&](const Block& rows) {
    const double* const classes = y.data() + rows.first;
    if (scores.n_rows == 1)
      compute_gradients_of_two(classes, scores.data + rows.first, rows.n,
                               gradient.data + rows.first, hessian.data + rows.first);
    else
      compute_gradients_of_more(classes, scores, rows, gradient, hessian);
  });
}

void losses_of(const Loss& loss, std::span<const double> y, Table<const double> scores,
               std::span<double> losses) {
  const bool bends = loss.kind == LossKind::huber;
  losses_of(bends ? scaled(loss, y, scores) : ScaledLoss{loss}, y, scores, losses);
}

void losses_of(const ScaledLoss& loss, std::span<const double> y, Table<const double> scores,
               std::span<double> losses) {
  if (loss.kind != LossKind::classes) return losses_of_numbers(loss, y, scores.data, losses.data());
  const bool are_two = scores.n_rows == 1;
  const auto room = make_buffer<double>(are_two ? 0 : scores.n_rows, kBlock);
  const Table<double> power{room.get(), scores.n_rows, kBlock};
  by_blocks(y.size(), 4 * scores.n_rows, [&](const Block& rows) {
    const double* const classes = y.data() + rows.first;
    if (are_two)
      losses_of_two(classes, scores.data + rows.first, rows.n, losses.data() + rows.first);
    else
      losses_of_more(classes, scores, rows, power, losses.data() + rows.first);
  });
}

// The squares of gradients, which are times weights, over these.
void square(std::span<const double> gradient, std::span<const double> weight, double* squares) {
  by_rows(gradient.size(), 1, [&](std::size_t i) {
    const double g = gradient[i];
    squares[i] = weight.empty() ? g * g : g * g / weight[i];
  });
}

double ratio_or_one(double above, double below) {
  const double ratio = above / below;
  return ratio > 0.0 && ratio < kInfinity ? ratio : 1.0;
}

double estimate_gradient_dispersion(std::span<const double> gradient,
                                    std::span<const double> hessian,
                                    std::span<const double> weight) {
  const auto squares = make_buffer<double>(gradient.size());
  square(gradient, weight, squares.get());
  return ratio_or_one(sum_of({squares.get(), gradient.size()}, {}), sum_of(hessian, {}));
}

double dispersion_of(const ScaledLoss& loss, std::span<const double> y, Table<const double> scores,
                     std::span<const double> weight, Table<const double> gradient,
                     Table<const double> hessian) {
  if (has_known_scale(loss)) return 1.0;
  Buffer<double> room;
  std::vector<double> sums;
  for (const auto& term : dispersion_terms(loss, y, scores, weight, gradient, hessian, room))
    sums.push_back(sum_of(term, {}));
  const double n = weight.empty() ? static_cast<double>(y.size()) : sum_of(weight, {});
  return dispersion_of_sums(loss, sums, n);
}

std::vector<std::span<const double>> dispersion_terms(
    const ScaledLoss& loss, std::span<const double> y, Table<const double> scores,
    std::span<const double> weight, Table<const double> gradient, Table<const double> hessian,
    Buffer<double>& room) {
  if (has_known_scale(loss)) return {};
  const std::size_t n = y.size();
  room = make_buffer<double>(n);
  const std::span<double> terms(room.get(), n);
  if (has_gradient_dispersion(loss)) {
    square(gradient.values(), weight, room.get());
    return {terms, hessian.values()};
  }
  losses_of(loss, y, scores, terms);
  if (!weight.empty()) by_rows(n, 1, [&](std::size_t i) { terms[i] *= weight[i]; });
  return {terms};
}

double dispersion_of_sums(const ScaledLoss& loss, std::span<const double> sums, double weight) {
  if (has_known_scale(loss)) return 1.0;
  if (has_gradient_dispersion(loss)) return ratio_or_one(sums[0], sums[1]);
  // The mean loss is that of the most likely scale, of squares half of it.
  const double mean = sums[0] / weight, scale = mean > 0.0 ? mean : 1.0;
  if (loss.kind != LossKind::quantile) return 2.0 * scale;
  // What the gradients are multiplied by.
  return loss.scale > 0.0 ? scale * 2.0 * loss.scale : 1.0;
}

double mean_loss(const Loss& loss, std::span<const double> y, Table<const double> scores,
                 std::span<const double> weight, std::span<double> losses) {
  losses_of(loss, y, scores, losses);
  const double n = weight.empty() ? static_cast<double>(y.size()) : sum_of(weight, {});
  return sum_of(losses, weight) / n;
}

double largest_number(std::span<const double> numbers) {
  double largest = 0.0;
  for (const auto part : chunks(numbers))
    for (const double one : part)
      largest = std::isnan(one) ? kInfinity : std::max(largest, std::abs(one));
  return largest;
}

double sum_of(std::span<const double> losses, std::span<const double> weight) {
  const auto each = [&](const auto& f) {
    for (const std::size_t i : indices(losses.size()))
      f(weight.empty() ? losses[i] : losses[i] * weight[i]);
  };
  double largest = 0.0;
  bool are_finite = true;
  each([&](double one) {
    largest = std::max(largest, std::abs(one));
    are_finite &= std::abs(one) < kInfinity;
  });
  if (!are_finite) return kInfinity;
  const FixedPoint fixed(largest, std::ssize(losses));
  std::int64_t sum = 0;
  each([&](double one) { sum += fixed.whole(one); });
  return fixed.number(sum);
}

}  // namespace certree
