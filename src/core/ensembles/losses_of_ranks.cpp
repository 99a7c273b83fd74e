// Sums take two messages: one for the largest numbers, which decide the units, and one for the
// sums. Quantiles take one message for each digit of their bits.
#include "ensembles/losses_of_ranks.hpp"

#include <stdexcept>

namespace certree {
namespace {

// Calls column(i, f) for i = 0, ..., n.size() - 1, which calls f with numbers of this rank, twice.
// Returns their sums over all ranks. n: how many numbers these are on all ranks.
template <class Column>
std::vector<double> sum_columns_over(Ranks& ranks, std::span<const std::int64_t> n,
                                     const Column& column) {
  std::vector<double> largest(n.size()), sums;
  for (std::size_t i = 0; i < n.size(); ++i)
    column(i, [&](std::span<const double> numbers) { largest[i] = largest_number(numbers); });
  reduce_over(&ranks, {}, largest);
  std::vector<std::int64_t> whole(n.size());
  for (std::size_t i = 0; i < n.size(); ++i)
    column(i, [&](std::span<const double> numbers) {
      whole[i] = whole_sum(numbers, largest[i], n[i]);
    });
  sum_over(&ranks, whole);
  for (std::size_t i = 0; i < n.size(); ++i) sums.push_back(number_of(whole[i], largest[i], n[i]));
  return sums;
}

constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

// The search of an order statistic by the digits of the bits of numbers.
struct DigitSearch {
  std::uint64_t prefix, rank;  // digits that are known, and the rank among numbers that have them
  std::array<std::int64_t, kDigits> count;

  void take_digit() {
    std::size_t digit = 0;
    for (; digit + 1 < kDigits && rank >= static_cast<std::uint64_t>(count[digit]); ++digit)
      rank -= static_cast<std::uint64_t>(count[digit]);
    prefix = prefix << kDigitBits | digit;
  }
};

// Returns the numbers at two ranks among those of all ranks in ascending order. Numbers are not
// negative; NaN are behind all others.
std::array<double, 2> order_statistics_over(Ranks& ranks, std::span<const double> numbers,
                                            std::array<std::uint64_t, 2> places) {
  std::array<DigitSearch, 2> searches{};
  for (const std::size_t t : {0, 1}) searches[t].rank = places[t];
  std::vector<std::int64_t> counts(2 * kDigits);
  for (int shift = 55; shift >= 0; shift -= kDigitBits) {
    const int above = shift + kDigitBits;
    for (DigitSearch& search : searches) search.count.fill(0);
    for (const auto part : chunks(numbers))
      for (const double one : part) {
        const auto bits = std::bit_cast<std::uint64_t>(one);
        const std::uint64_t prefix = above < 64 ? bits >> above : 0;
        for (DigitSearch& search : searches)
          search.count[bits >> shift & (kDigits - 1)] += prefix == search.prefix ? 1 : 0;
      }
    for (const std::size_t t : {0, 1})
      std::ranges::copy(searches[t].count,
                        counts.begin() + static_cast<std::ptrdiff_t>(t * kDigits));
    sum_over(&ranks, counts);
    for (const std::size_t t : {0, 1}) {
      std::copy_n(counts.begin() + static_cast<std::ptrdiff_t>(t * kDigits), kDigits,
                  searches[t].count.begin());
      searches[t].take_digit();
    }
  }
  return {std::bit_cast<double>(searches[0].prefix), std::bit_cast<double>(searches[1].prefix)};
}

// Returns the quantile of distances at which a loss bends; see the function bend_of of losses.cpp.
double bend_over(Ranks& ranks, double quantile, std::span<const double> distance, std::int64_t n) {
  const double place = quantile * static_cast<double>(n - 1);
  const auto rank = static_cast<std::uint64_t>(place), last = static_cast<std::uint64_t>(n - 1);
  const auto [below, above] =
      order_statistics_over(ranks, distance, {rank, std::min(rank + 1, last)});
  return rank == last ? below : below + (above - below) * (place - std::floor(place));
}

// Calls f with the numbers of which the scale of a loss is the mean, or a quantile.
template <class F>
void with_scale_terms(const LossRows& rows, const F& f) {
  const auto room = make_buffer<double>(rows.y.size());
  const std::span terms(room.get(), rows.y.size());
  scale_terms(rows.loss, rows.y, rows.scores, terms);
  f(std::span<const double>(terms));
}

}  // namespace

std::int64_t whole_sum(std::span<const double> numbers, double largest, std::int64_t n) {
  if (largest == kInfinity) return 0;
  const FixedPoint fixed(largest, n);
  std::int64_t sum = 0;
  for (const auto part : chunks(numbers))
    for (const double one : part) sum += fixed.whole(one);
  return sum;
}

double number_of(std::int64_t whole, double largest, std::int64_t n) {
  return largest == kInfinity ? kInfinity : FixedPoint(largest, n).number(whole);
}

std::vector<ScaledLoss> scaled_over(Ranks& ranks, std::span<const LossRows> rows,
                                    std::span<const std::int64_t> n) {
  std::vector<ScaledLoss> losses;
  for (const LossRows& one : rows) losses.push_back({one.loss});
  if (rows.empty() || !has_scale(rows[0].loss)) return losses;
  if (rows[0].loss.kind == LossKind::huber) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      with_scale_terms(rows[i], [&](std::span<const double> distance) {
        losses[i].scale = bend_over(ranks, rows[i].loss.parameter, distance, n[i]);
      });
    return losses;
  }
  const auto sums = sum_columns_over(
      ranks, n, [&](std::size_t i, const auto& f) { with_scale_terms(rows[i], f); });
  for (std::size_t i = 0; i < rows.size(); ++i)
    losses[i].scale = sums[i] / static_cast<double>(n[i]);
  return losses;
}

std::vector<double> sum_losses_over(Ranks& ranks, std::span<const LossRows> rows,
                                    std::span<const std::int64_t> n) {
  std::vector<ScaledLoss> losses;
  if (!rows.empty() && rows[0].loss.kind == LossKind::huber)
    losses = scaled_over(ranks, rows, n);
  else
    for (const LossRows& one : rows) losses.push_back({one.loss});
  return sum_columns_over(ranks, n, [&](std::size_t i, const auto& f) {
    const LossRows& one = rows[i];
    const auto room = make_buffer<double>(one.y.size());
    const std::span terms(room.get(), one.y.size());
    losses_of(losses[i], one.y, one.scores, terms);
    if (!one.weight.empty())
      for (const std::size_t k : indices(terms.size())) terms[k] *= one.weight[k];
    f(std::span<const double>(terms));
  });
}

double mean_loss_over(Ranks& ranks, const LossRows& rows) {
  const std::int64_t n = std::ssize(rows.y);
  const RowCount count = count_rows_over(&ranks, {&n, 1}, {&rows.weight, 1})[0];
  if (count.n == 0) throw std::invalid_argument("no rows have no mean loss");
  return sum_losses_over(ranks, {&rows, 1}, {&count.n, 1})[0] / count.weight;
}

std::vector<RowCount> count_rows_over(Ranks* ranks, std::span<const std::int64_t> n_rows,
                                      std::span<const std::span<const double>> weights) {
  std::vector<std::int64_t> n(n_rows.begin(), n_rows.end()), whole;
  std::vector<double> largest;
  for (const auto& weight : weights)
    largest.push_back(weight.empty() ? 1.0 : largest_number(weight));
  reduce_over(ranks, n, largest);
  for (std::size_t i = 0; i < n.size(); ++i) {
    const double one = 1.0;
    whole.push_back(weights[i].empty() ? n_rows[i] * whole_sum({&one, 1}, largest[i], n[i])
                                       : whole_sum(weights[i], largest[i], n[i]));
  }
  sum_over(ranks, whole);
  std::vector<RowCount> counts;
  for (std::size_t i = 0; i < n.size(); ++i)
    counts.push_back({n[i], number_of(whole[i], largest[i], n[i])});
  return counts;
}

}  // namespace certree
