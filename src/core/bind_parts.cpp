// The doors of fits on rows that lie in parts.
#include "bind_bins.hpp"
#include "grow/whole_numbers.hpp"

namespace certree::bindings {
namespace {

using Wholes = In<std::int64_t, 1>;

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
}

}  // namespace certree::bindings
