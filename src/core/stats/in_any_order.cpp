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

}  // namespace

void ends_of_cells(std::span<const std::int32_t> cell, std::span<const double> values,
                   Table<double> ends) {
  for (const std::size_t c : turns(ends.n_rows)) {
    ends.row(c)[0] = kInfinity;
    ends.row(c)[1] = -kInfinity;
  }
  for (const std::size_t i : turns(values.size())) {
    double* const of_cell = ends.row(cell[i]);
    of_cell[0] = std::min(of_cell[0], values[i]);
    of_cell[1] = std::max(of_cell[1], values[i]);
  }
}

void sums_of_cells(std::span<const std::int32_t> cell, std::span<const double> values,
                   std::span<const double> largest, std::int64_t n, Table<std::int64_t> sums) {
  std::vector<CellUnits> units;
  units.reserve(largest.size());
  for (const double one : largest) units.emplace_back(one, n);
  fill(sums.values(), std::int64_t{0});
  for (const std::size_t i : turns(values.size())) {
    const CellUnits unit = units[static_cast<std::size_t>(cell[i])];
    const double whole = std::nearbyint(std::ldexp(values[i], -unit.first));
    const double rest = values[i] - std::ldexp(whole, unit.first);
    sums.row(cell[i])[0] += static_cast<std::int64_t>(whole);
    sums.row(cell[i])[1] +=
        static_cast<std::int64_t>(std::nearbyint(std::ldexp(rest, -unit.second)));
  }
}

void numbers_of_sums(Table<const std::int64_t> sums, std::span<const double> largest,
                     std::int64_t n, std::span<double> numbers) {
  for (const std::size_t c : turns(numbers.size())) {
    const CellUnits unit(largest[c], n);
    numbers[c] = std::ldexp(static_cast<double>(sums.row(c)[0]), unit.first) +
                 std::ldexp(static_cast<double>(sums.row(c)[1]), unit.second);
  }
}

}  // namespace certree
