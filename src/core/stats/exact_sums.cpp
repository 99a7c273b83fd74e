#include "stats/stats.hpp"

namespace certree {
namespace {

// Exponents of the two units of a group: a value is first * 2^first_exponent + second *
// 2^second_exponent, rounded, for integers first and second. The units are so large that no sum of
// n first integers exceeds 2^61, and the second unit is as much smaller again.
struct UnitExponents {
  int first, second;

  UnitExponents(double largest, std::int64_t n) {
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1) - 1);
    const int bits = 61 - static_cast<int>(std::bit_width(most));
    int exponent = 0;
    if (largest > 0.0) std::frexp(largest, &exponent);
    first = exponent - bits;
    second = first - bits;
  }
};

std::int64_t nearest(double x) { return static_cast<std::int64_t>(x + std::copysign(0.5, x)); }

// Splits values of a group into integers of its two units.
class IntegerSplit {
 public:
  explicit IntegerSplit(const UnitExponents& exponents) : exponents_(exponents) {
    // Multiplying by a power of two is faster than std::ldexp, but float64 must hold the power.
    constexpr int kMost = 1000;
    has_factors_ = exponents.first < kMost && exponents.first > -kMost && exponents.second > -kMost;
    if (!has_factors_) return;
    to_first_ = std::ldexp(1.0, -exponents.first);
    from_first_ = std::ldexp(1.0, exponents.first);
    to_second_ = std::ldexp(1.0, -exponents.second);
  }

  // Adds the integers of x to sums, (2,).
  void add(double x, std::int64_t* sums) const {
    const std::int64_t first =
        nearest(has_factors_ ? x * to_first_ : std::ldexp(x, -exponents_.first));
    const auto number = static_cast<double>(first);
    const double rest =
        x - (has_factors_ ? number * from_first_ : std::ldexp(number, exponents_.first));
    sums[0] += first;
    sums[1] += nearest(has_factors_ ? rest * to_second_ : std::ldexp(rest, -exponents_.second));
  }

 private:
  UnitExponents exponents_;
  bool has_factors_;
  double to_first_ = 0.0, from_first_ = 0.0, to_second_ = 0.0;
};

}  // namespace

void group_ranges(std::span<const std::int32_t> group, std::span<const double> values,
                  Table<double> ranges) {
  for (const std::size_t g : indices(ranges.n_rows)) {
    ranges.row(g)[0] = kInfinity;
    ranges.row(g)[1] = -kInfinity;
  }
  for (const std::size_t i : indices(values.size())) {
    double* const range = ranges.row(group[i]);
    range[0] = std::min(range[0], values[i]);
    range[1] = std::max(range[1], values[i]);
  }
}

void exact_sums(std::span<const std::int32_t> group, std::span<const double> values,
                std::span<const double> largest, std::int64_t n, Table<std::int64_t> sums) {
  std::vector<IntegerSplit> splits;
  splits.reserve(largest.size());
  for (const double bound : largest) splits.emplace_back(UnitExponents(bound, n));
  fill(sums.values(), std::int64_t{0});
  for (const std::size_t i : indices(values.size()))
    splits[static_cast<std::size_t>(group[i])].add(values[i], sums.row(group[i]));
}

void exact_sums_to_doubles(Table<const std::int64_t> sums, std::span<const double> largest,
                           std::int64_t n, std::span<double> totals) {
  for (const std::size_t g : indices(totals.size())) {
    const UnitExponents exponents(largest[g], n);
    totals[g] = std::ldexp(static_cast<double>(sums.row(g)[0]), exponents.first) +
                std::ldexp(static_cast<double>(sums.row(g)[1]), exponents.second);
  }
}

}  // namespace certree
