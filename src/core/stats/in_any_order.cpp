// Sums of numbers that no order of the rows changes: of whole numbers, in units of each cell.

#include "stats/stats.hpp"

namespace certree {
namespace {

// A number is told by two whole ones: in a unit in which no sum exceeds 2^61, and what is left of
// it in one that is as much smaller.
struct CellUnits {
  int first, second;

  CellUnits(double largest, std::int64_t n) {
    const auto most = static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1) - 1);
    const int bits = 61 - static_cast<int>(std::bit_width(most));
    int exponent = 0;
    if (largest > 0.0) std::frexp(largest, &exponent);
    first = exponent - bits;
    second = first - bits;
  }
};

std::int64_t nearest(double x) { return static_cast<std::int64_t>(x + std::copysign(0.5, x)); }

// Numbers in the units of a cell. Powers of two are multiplied by where float64 holds them.
class InUnits {
 public:
  explicit InUnits(const CellUnits& unit) : unit_(unit) {
    constexpr int kMost = 1000;
    is_plain_ = unit.first < kMost && unit.first > -kMost && unit.second > -kMost;
    if (!is_plain_) return;
    to_first_ = std::ldexp(1.0, -unit.first);
    from_first_ = std::ldexp(1.0, unit.first);
    to_second_ = std::ldexp(1.0, -unit.second);
  }
  void add(double x, std::int64_t* sums) const {
    const std::int64_t whole = nearest(is_plain_ ? x * to_first_ : std::ldexp(x, -unit_.first));
    const auto number = static_cast<double>(whole);
    const double rest = x - (is_plain_ ? number * from_first_ : std::ldexp(number, unit_.first));
    sums[0] += whole;
    sums[1] += nearest(is_plain_ ? rest * to_second_ : std::ldexp(rest, -unit_.second));
  }

 private:
  CellUnits unit_;
  bool is_plain_;
  double to_first_ = 0.0, from_first_ = 0.0, to_second_ = 0.0;
};

}  // namespace

void ends_of_cells(std::span<const std::int32_t> cell, std::span<const double> values,
                   Table<double> ends) {
  for (const std::size_t c : indices(ends.n_rows)) {
    ends.row(c)[0] = kInfinity;
    ends.row(c)[1] = -kInfinity;
  }
  for (const std::size_t i : indices(values.size())) {
    double* const of_cell = ends.row(cell[i]);
    of_cell[0] = std::min(of_cell[0], values[i]);
    of_cell[1] = std::max(of_cell[1], values[i]);
  }
}

void sums_of_cells(std::span<const std::int32_t> cell, std::span<const double> values,
                   std::span<const double> largest, std::int64_t n, Table<std::int64_t> sums) {
  std::vector<InUnits> units;
  units.reserve(largest.size());
  for (const double one : largest) units.emplace_back(CellUnits(one, n));
  fill(sums.values(), std::int64_t{0});
  for (const std::size_t i : indices(values.size()))
    units[static_cast<std::size_t>(cell[i])].add(values[i], sums.row(cell[i]));
}

void numbers_of_sums(Table<const std::int64_t> sums, std::span<const double> largest,
                     std::int64_t n, std::span<double> numbers) {
  for (const std::size_t c : indices(numbers.size())) {
    const CellUnits unit(largest[c], n);
    numbers[c] = std::ldexp(static_cast<double>(sums.row(c)[0]), unit.first) +
                 std::ldexp(static_cast<double>(sums.row(c)[1]), unit.second);
  }
}

}  // namespace certree
