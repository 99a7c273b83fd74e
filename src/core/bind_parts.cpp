// The doors of fits on rows that lie in parts.
#include "bind_bins.hpp"
#include "grow/cells_of_parts.hpp"
#include "grow/whole_numbers.hpp"

namespace certree::bindings {
namespace {

using Wholes = In<std::int64_t, 1>;
using Wholes2 = In<std::int64_t, 2>;

// -- bins

nb::object distinct_values(const Doubles& column) {
  std::vector<double> values;
  const bool are_few = run([&] { return certree::distinct_values(view(column), values); });
  return are_few ? nb::cast(owned(std::move(values))) : nb::none();
}

auto bin_edges(const Doubles& values, std::int64_t most, bool fine_ends) {
  if (most < 2 || most > kMostBins) throw std::invalid_argument("bins must be 2 .. 255");
  std::vector<double> edges;
  const NumberBins wanted{static_cast<std::size_t>(most), fine_ends};
  run([&] { edges = certree::edges_of({values.data(), values.data() + values.size()}, wanted); });
  return owned(std::move(edges));
}

auto encode_numbers(const Doubles& column, const Doubles& edges) {
  if (edges.size() >= kMostBins) throw std::invalid_argument("edges must be fewer than bins");
  const auto loop = [&](auto codes, auto low, auto high) {
    certree::encode_numbers(view(column), view(edges), codes, low, high);
  };
  return run(loop, Column<std::uint8_t>(column.size()), Column<double>(edges.size() + 1),
             Column<double>(edges.size() + 1));
}

auto bin_levels(const Ints& category_codes, const Wholes& n_rows) {
  const auto counts = sized("n_rows", n_rows, category_codes.size());
  std::vector<std::uint8_t> bins;
  const std::size_t n = run([&] { return bin_categories(view(category_codes), counts, bins); });
  return std::tuple(owned(std::move(bins)), n);
}

int fixed_unit(double largest, std::int64_t n) { return FixedPoint(largest, n).unit(); }

// Places of rows in an order.
void expect_cells(const Wholes2& cells, std::size_t n) {
  const auto table = sized("cells", cells, cells.shape(0), 2);
  for (std::int64_t c = 0; c < table.n_rows; ++c)
    if (table.row(c)[0] < 0 || table.row(c)[0] > table.row(c)[1] ||
        std::cmp_greater(table.row(c)[1], n))
      throw std::invalid_argument("cells must begin and end in 0 .. " + std::to_string(n));
}

// Rows of cells in an order.
void expect_rows(const Table<const std::int64_t>& cells, std::span<const std::int32_t> order,
                 std::size_t n) {
  for (std::int64_t c = 0; c < cells.n_rows; ++c) {
    const std::int64_t* const range = cells.row(c);
    expect_codes("order",
                 order.subspan(static_cast<std::size_t>(range[0]),
                               static_cast<std::size_t>(range[1] - range[0])),
                 static_cast<std::int64_t>(n));
  }
}

auto part_divide(const Codes& codes, const InOut<std::int32_t, 1>& order, const Wholes2& cells,
                 const Ints& cell, const Ints& feature, const Codes& goes_left) {
  const std::size_t n = codes.shape(1), n_cuts = cell.size();
  const auto rows = sized("order", order, n);
  expect_codes("feature", sized("feature", feature, n_cuts),
               static_cast<std::int64_t>(codes.shape(0)));
  expect_cells(cells, n);
  expect_rows(view(cells), rows, n);
  for (std::size_t d = 0; d < n_cuts; ++d)
    expect_codes("cell", view(cell).subspan(d, 1),
                 static_cast<std::int64_t>(cells.shape(0) + 2 * d));
  const PartCuts cuts{view(cell), view(feature), sized("goes_left", goes_left, n_cuts, 256)};
  for (const std::uint8_t one : cuts.goes_left.values())
    if (one > 1) throw std::invalid_argument("goes_left must hold 0 and 1");
  const auto loop = [&](Table<std::int64_t> below) {
    certree::part_divide(view(codes), view(cells), cuts, rows, below);
  };
  return run(loop, Rows<std::int64_t>(checked_size(n_cuts, 2u), 2));
}

}  // namespace

void bind_parts(nb::module_& core) {
  core.def("distinct_values", &distinct_values, "column"_array,
           "The distinct values of a part, ascending; None where there are more than 255.");
  core.def("choose_bin_edges", &bin_edges, "values"_array, "most"_a, "fine_ends"_a,
           "Edges of so many bins at most by values of sampled rows.");
  core.def("encode_numbers", &encode_numbers, "column"_array, "edges"_array,
           "Codes of a part, and the smallest and largest value in each bin.");
  core.def("bin_categories", &bin_levels, "category_codes"_array, "n_rows"_array,
           "The bin of each of ascending category_codes by how many rows have it, and the number "
           "of bins.");
  core.def("fixed_unit", &fixed_unit, "largest"_a, "n"_a,
           "Exponent of the power of two that n numbers are whole multiples of.");
  core.def("part_divide", &part_divide, "codes"_array, "order"_array, "cells"_array, "cell"_array,
           "feature"_array, "goes_left"_array,
           "Moves rows in their order as cells are cut one after the other; the cells below.");
}

}  // namespace certree::bindings
