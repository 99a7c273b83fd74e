// The doors of single trees on rows that lie in parts.
#include "bind_bins.hpp"
#include "grow/cells_of_parts.hpp"

namespace certree::bindings {
namespace {

using Wholes = In<std::int64_t, 1>;
using Wholes2 = In<std::int64_t, 2>;
using Keys = In<std::uint64_t, 1>;

// Number of classes, criterion, whether rows are counted, whether there are sets, bits, unit.
using TargetOfParts = std::tuple<std::int32_t, std::string, bool, bool, std::int64_t, int>;

PartTarget target_of(const TargetOfParts& given) {
  const auto& [n_classes, criterion, counts_rows, has_sets, bits, unit] = given;
  if (n_classes < 0 || bits < 1 || bits > 62)
    throw std::invalid_argument("a target has classes, or whole numbers of at most 62 bits");
  const Criterion of_numbers = criterion == "poisson" ? Criterion::poisson : Criterion::squared;
  return {n_classes,   n_classes > 0 ? criterion_of(criterion) : of_numbers,
          counts_rows, has_sets,
          bits,        unit};
}

// begin, lane, sum.
using Lanes = std::tuple<Wholes, Ints, Wholes>;

LanesOfCells lanes_of(const Lanes& given, const PartTarget& target) {
  const auto& [begin, lane, sum] = given;
  if (begin.size() == 0) throw std::invalid_argument("begin must have a number for each cell");
  const LanesOfCells lanes{starts_of("begin", begin, begin.size() - 1, lane.size()), view(lane),
                           sized("sum", sum, lane.size())};
  const std::int32_t most = target.n_classes > 2 ? target.n_classes : 2;
  expect_codes("lane", lanes.lane, most);
  for (std::size_t c = 0; c < lanes.size(); ++c) {
    const auto first = static_cast<std::size_t>(lanes.begin[c]);
    const auto n = static_cast<std::size_t>(lanes.begin[c + 1]) - first;
    const auto of_cell = lanes.lane.subspan(first, n);
    if (n == 0 || !std::ranges::is_sorted(of_cell, std::less_equal<>()))
      throw std::invalid_argument("the lanes of a cell must ascend");
    if (target.n_classes <= 2 && n != 2)
      throw std::invalid_argument("a cell has a weight and a sum");
  }
  return lanes;
}

std::vector<std::int32_t> widths(const LanesOfCells& lanes, bool counts_rows) {
  std::vector<std::int32_t> width(lanes.size());
  for (std::size_t c = 0; c < width.size(); ++c)
    width[c] = static_cast<std::int32_t>(lanes.begin[c + 1] - lanes.begin[c]) + counts_rows;
  return width;
}

// n_bins, bin, sum, about.
using Tables = std::tuple<Ints, Bytes, Wholes, Wholes>;

// n_about: of how many cells there is more than their tables.
GivenTables tables_of(const Tables& given, std::span<const std::int32_t> width,
                      std::size_t n_about) {
  const auto& [n_bins, bin, sum, about] = given;
  const GivenTables tables{view(n_bins), view(bin), view(sum), view(about)};
  expect_codes("n_bins", view(n_bins), 257);
  expect_length("about", about.size(), 4 * n_about);
  const std::size_t p = width.empty() ? 0 : n_bins.size() / width.size();
  expect_length("n_bins", n_bins.size(), p * width.size());
  std::size_t n_entries = 0, n_numbers = 0;
  for (std::size_t c = 0; c < width.size(); ++c)
    for (std::size_t j = 0; j < p; ++j) {
      const auto n = static_cast<std::size_t>(tables.n_bins[c * p + j]);
      if (n_entries + n > bin.size()) throw std::invalid_argument("bin has too few entries");
      const std::span<const std::uint8_t> own(tables.bin.data() + n_entries, n);
      if (!std::ranges::is_sorted(own, std::less_equal<>()))
        throw std::invalid_argument("the bins of a cell must ascend");
      n_entries += n;
      n_numbers += n * static_cast<std::size_t>(width[c]);
    }
  expect_length("bin", bin.size(), n_entries);
  expect_length("sum", sum.size(), n_numbers);
  return tables;
}

auto handed_over(CellTables&& made) {
  return std::tuple(owned(std::move(made.n_bins)), owned(std::move(made.bin)),
                    owned(std::move(made.sum)), owned(std::move(made.about)));
}

auto part_tables(const Codes& codes, const Ints& order, const Wholes2& rows, const Wholes2& cells,
                 std::size_t n_added, const Lanes& totals, const TargetOfParts& given) {
  const std::size_t n = codes.shape(1);
  const PartTarget target = target_of(given);
  const LanesOfCells lanes = lanes_of(totals, target);
  expect_codes("order", sized("order", order, n), static_cast<std::int64_t>(n));
  const auto of_rows = sized("rows", rows, n, 2);
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t* const row = of_rows.row(i);
    if (row[0] < 1) throw std::invalid_argument("weights must be whole numbers above 0");
    if (target.n_classes > 0 && (row[1] < 0 || row[1] >= target.n_classes))
      throw std::invalid_argument("y must hold classes");
  }
  const auto ranges = sized("cells", cells, lanes.size(), 2);
  for (std::int64_t c = 0; c < ranges.n_rows; ++c)
    if (ranges.row(c)[0] < 0 || ranges.row(c)[0] > ranges.row(c)[1] ||
        std::cmp_greater(ranges.row(c)[1], n))
      throw std::invalid_argument("cells must begin and end in 0 .. " + std::to_string(n));
  if (n_added > lanes.size()) throw std::invalid_argument("cells that are added up must be given");
  CellTables made;
  run([&] {
    made = tables_of_part(view(codes), view(order), of_rows, ranges, n_added, lanes, target);
  });
  return handed_over(std::move(made));
}

auto add_tables(const Tables& one, const Tables& other, const Ints& width) {
  const std::span<const std::int32_t> of_cells = view(width);
  const std::size_t n_about = std::max(of_cells.size(), std::get<3>(one).size() / 4);
  const GivenTables first = tables_of(one, of_cells, n_about);
  const GivenTables second = tables_of(other, of_cells, n_about);
  expect_length("n_bins", second.n_bins.size(), first.n_bins.size());
  CellTables made;
  run([&] { made = added(first, second, of_cells); });
  return handed_over(std::move(made));
}

// Where those of each of some cells are among told and known ones.
using Places = In<std::int32_t, 2>;

auto tables_of_some(const Tables& told, const Lanes& of_told, const Tables& above,
                    const Lanes& of_above, const Lanes& of_some, const Places& places,
                    const TargetOfParts& given) {
  const PartTarget target = target_of(given);
  const auto known = [&](const Tables& tables, const Lanes& totals) {
    const LanesOfCells lanes = lanes_of(totals, target);
    const std::size_t n_about = std::max(lanes.size(), std::get<3>(tables).size() / 4);
    return CellsInTables{tables_of(tables, widths(lanes, target.counts_rows), n_about), lanes};
  };
  const CellsInTables own = known(told, of_told), others = known(above, of_above);
  const auto n_own = own.lanes.size(), n_others = others.lanes.size();
  if (own.tables.n_bins.size() * n_others != others.tables.n_bins.size() * n_own)
    throw std::invalid_argument("tables must be of the same features");
  const LanesOfCells lanes = lanes_of(of_some, target);
  const auto at = sized("places", places, lanes.size(), 3);
  for (std::int64_t c = 0; c < at.n_rows; ++c) {
    const std::int32_t* const one = at.row(c);
    if (one[0] < 0 || std::cmp_greater_equal(one[0], n_own) || one[1] < -1 ||
        (one[1] >= 0 && std::cmp_greater_equal(one[1], n_others)) || one[2] < -1 ||
        (one[2] >= 0 && std::cmp_greater_equal(one[2], own.tables.about.size() / 4)))
      throw std::invalid_argument("places must be those of cells that are given");
    if (one[1] < 0 && !std::ranges::equal(lanes.of(c), own.lanes.of(one[0])))
      throw std::invalid_argument("a cell that is told must have its lanes");
  }
  CellTables made;
  run([&] { made = certree::tables_of_some(own, others, lanes, at, target.counts_rows); });
  return handed_over(std::move(made));
}

// Number of rows, depths, keys, bounds, totals.
using Waiting = std::tuple<Wholes, Ints, Keys, Doubles2, Lanes>;

auto cut_cells(const Kept& kept, const Limits& limits, const MonotonicSigns& monotonic,
               const TargetOfParts& given, const Waiting& waiting, const Tables& tables,
               const Ints& features, double least) {
  const std::size_t p = std::get<0>(kept).size();
  const PartTarget target = target_of(given);
  const BinnedGrowth growth = growth_of(limits, monotonic, {}, p, 1);
  const auto& [n_rows, depth, key, bounds, totals] = waiting;
  const LanesOfCells lanes = lanes_of(totals, target);
  const std::size_t n = lanes.size();
  const WaitingCells cells{sized("n_rows", n_rows, n), sized("depth", depth, n),
                           sized("key", key, n), sized("bounds", bounds, monotonic ? n : 0, 2),
                           lanes};
  expect_codes("features", sized("features", features, p), static_cast<std::int64_t>(p));
  const KeptBins bins = kept_bins(kept, p);
  const GivenTables known = tables_of(tables, widths(lanes, target.counts_rows), n);
  expect_length("n_bins", known.n_bins.size(), n * p);
  OfRoot of_root{{features.data(), features.data() + p}, least};
  CutCells made;
  run([&] { made = certree::cut_cells(bins, growth, target, cells, known, of_root); });
  const std::size_t d = made.gain.size();
  return std::tuple(
      owned(std::move(made.is_cut)),
      std::tuple(owned(std::move(made.gain)), owned(std::move(made.feature)),
                 owned(std::move(made.threshold)), owned(std::move(made.default_left)),
                 owned(std::move(made.has_missing)), owned(std::move(made.category_start)),
                 owned(std::move(made.categories))),
      owned(std::move(made.goes_left), d, 256),
      std::tuple(owned(std::move(made.n_rows)), owned(std::move(made.key)),
                 owned(std::move(made.bounds), 2 * d, 2),
                 std::tuple(owned(std::move(made.begin)), owned(std::move(made.lane)),
                            owned(std::move(made.sum)))),
      std::tuple(owned(std::move(of_root.features)), of_root.least));
}

auto tree_of_cells(const Ints& child, const Ints& feature, const Doubles& gain,
                   const Doubles& threshold, const Bytes& default_left,
                   const Wholes& category_start, const Ints& categories, const std::string& order,
                   std::int64_t max_leaves) {
  const std::size_t n = child.size();
  for (std::size_t c = 0; c < n; ++c) {
    const std::int32_t first = child.data()[c];
    if (first != kLeaf && (first <= static_cast<std::int64_t>(c) ||
                           first + std::int64_t{1} >= static_cast<std::int64_t>(n)))
      throw std::invalid_argument("children must come after their parents");
  }
  if (n == 0) throw std::invalid_argument("a tree has a root");
  const DecidedCells cells{view(child),
                           sized("feature", feature, n),
                           sized("gain", gain, n),
                           sized("threshold", threshold, n),
                           sized("default_left", default_left, n),
                           starts_of("category_start", category_start, n, categories.size()),
                           view(categories)};
  TreeOfCells made;
  run([&] {
    made = certree::tree_of_cells(cells, order == "depth" ? Order::depth : Order::best, max_leaves);
  });
  TreeColumns& columns = made.columns;
  if (columns.category_start.empty()) columns.category_start.assign(columns.left.size() + 1, 0);
  return std::tuple(certree::bindings::handed_over(std::move(columns), {0}),
                    owned(std::move(made.cell)));
}

}  // namespace

void bind_cells_of_parts(nb::module_& core) {
  core.def("part_tables", &part_tables, "codes"_array, "order"_array, "rows"_array, "cells"_array,
           "n_added"_a, "totals"_a, "target"_a, "What cells of a part add up to; see CellTables.");
  core.def("add_tables", &add_tables, "one"_a, "other"_a, "width"_array,
           "What cells of two parts add up to.");
  core.def("tables_of_some", &tables_of_some, "told"_a, "of_told"_a, "above"_a, "of_above"_a,
           "of_some"_a, "places"_array, "target"_a,
           "What some cells add up to, by those that are told and by cells above these.");
  core.def("key_of_root", &key_of_root, "seed"_a, "The key of the root of a tree.");
  core.def("cut_cells", &cut_cells, "kept"_a, "limits"_a, "monotonic"_array_or_none, "target"_a,
           "waiting"_a, "tables"_a, "features"_array, "least"_a,
           "How cells are cut by what all parts add up to, and the cells below; see CutCells.");
  core.def("tree_of_cells", &tree_of_cells, "child"_array, "feature"_array, "gain"_array,
           "threshold"_array, "default_left"_array, "category_start"_array, "categories"_array,
           "order"_a, "max_leaves"_a, "The tree of cuts, and the cell that each node is.");
}

}  // namespace certree::bindings
