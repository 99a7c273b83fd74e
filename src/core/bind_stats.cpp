// The doors of the statistics.
#include "bind.hpp"
#include "stats/stats.hpp"

namespace certree::bindings {
namespace {

auto count(const Ints& left, const Ints& leaf, const Ints& y, const std::optional<Doubles>& weight,
           std::int64_t n_classes) {
  const Shape tree = shape(left);
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  const auto classes = sized("y", y, leaf.size());
  const RoutedRows rows{view(leaf), sized("weight", weight, leaf.size())};
  expect_codes("y", classes, n_classes);
  expect_codes("leaf", rows.leaf, std::ssize(tree.children));
  return run([&](auto counts) { certree::count(tree, rows, classes, counts); },
             Rows<double>(tree.size(), n_classes));
}

auto count_entries(const Ints& left, const Ints& leaf, const Ints& y,
                   const std::optional<Doubles>& weight) {
  const Shape tree = shape(left);
  const auto classes = sized("y", y, leaf.size());
  const RoutedRows rows{view(leaf), sized("weight", weight, leaf.size())};
  expect_codes("y", classes, std::numeric_limits<std::int32_t>::max());
  expect_codes("leaf", rows.leaf, std::ssize(tree.children));
  auto found = run([&] { return certree::count_entries(tree, rows, classes); });
  return std::tuple(owned(std::move(found.begin)), owned(std::move(found.classes)),
                    owned(std::move(found.weight)));
}

auto moments(const Ints& left, const Ints& leaf, const Doubles& target,
             const std::optional<Doubles>& weight) {
  const Shape tree = shape(left);
  const auto numbers = sized("target", target, leaf.size());
  const RoutedRows rows{view(leaf), sized("weight", weight, leaf.size())};
  expect_codes("leaf", rows.leaf, std::ssize(tree.children));
  const auto loop = [&](auto total, auto mean, auto squares) {
    certree::moments(tree, rows, numbers, total, mean, squares);
  };
  return run(loop, Column<double>(tree.size()), Column<double>(tree.size()),
             Column<double>(tree.size()));
}

// Of the leaves, some by their numbers.
auto gather_moments(const Ints& left, const Ints& leaf, const Doubles& weight, const Doubles& mean,
                    const Doubles& squares) {
  const Shape tree = shape(left);
  const std::size_t n = leaf.size();
  expect_codes("leaf", view(leaf), std::ssize(tree.children));
  const std::array given{sized("weight", weight, n), sized("mean", mean, n),
                         sized("squares", squares, n)};
  const auto loop = [&](auto total, auto means, auto all_squares) {
    const std::array<std::span<double>, 3> columns{total, means, all_squares};
    for (std::size_t k = 0; k < 3; ++k) {
      fill(columns[k], 0.0);
      for (std::size_t i = 0; i < n; ++i)
        columns[k][static_cast<std::size_t>(leaf.data()[i])] = given[k][i];
    }
    certree::gather_moments(tree, total, means, all_squares);
  };
  return run(loop, Column<double>(tree.size()), Column<double>(tree.size()),
             Column<double>(tree.size()));
}

auto ends_of_cells(const Ints& cell, const Doubles& values, std::int64_t n_cells) {
  expect_codes("cell", view(cell), n_cells);
  const auto numbers = sized("values", values, cell.size());
  return run([&](auto ends) { certree::ends_of_cells(view(cell), numbers, ends); },
             Rows<double>(static_cast<std::size_t>(n_cells), 2));
}

auto sums_of_cells(const Ints& cell, const Doubles& values, const Doubles& largest,
                   std::int64_t n) {
  expect_codes("cell", view(cell), static_cast<std::int64_t>(largest.size()));
  const auto numbers = sized("values", values, cell.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!(std::abs(numbers[i]) <= largest.data()[cell.data()[i]]))
      throw std::invalid_argument("values must be at most the largest ones of their cells");
  return run(
      [&](auto sums) { certree::sums_of_cells(view(cell), numbers, view(largest), n, sums); },
      Rows<std::int64_t>(largest.size(), 2));
}

auto numbers_of_sums(const In<std::int64_t, 2>& sums, const Doubles& largest, std::int64_t n) {
  const auto table = sized("sums", sums, largest.size(), 2);
  return run([&](auto numbers) { certree::numbers_of_sums(table, view(largest), n, numbers); },
             Column<double>(largest.size()));
}

auto majority(const Ints& left, const ClassCounts& counts) {
  const Shape tree = shape(left);
  const Counts known = counts_of("counts", counts, tree);
  return run([&](auto label) { certree::majority(tree, known, label); },
             Column<std::int32_t>(tree.size()));
}

auto frequencies(const Ints& left, const Doubles2& counts, double rows, double weight_unit) {
  const Shape tree = shape(left);
  const auto table = counts_of("counts", counts, tree).table;
  const Smoothing smoothing{rows, weight_unit};
  return run([&](auto frequency) { certree::frequencies(tree, table, smoothing, frequency); },
             Rows<double>(table.n_rows, table.width));
}

auto smoothed_means(const Ints& left, const Doubles& rows, const Doubles& mean, double added,
                    double weight_unit) {
  const Shape tree = shape(left);
  const auto totals = sized("rows", rows, tree.size());
  const auto means = sized("mean", mean, tree.size());
  const Smoothing smoothing{added, weight_unit};
  return run([&](auto value) { certree::smoothed_means(tree, totals, means, smoothing, value); },
             Column<double>(tree.size()));
}

}  // namespace

void bind_stats(nb::module_& core) {
  core.def("count", &count, "left"_array, "leaf"_array, "y"_array, "weight"_array_or_none,
           "n_classes"_a, "Weight of the rows of each class in each node.");
  core.def(
      "count_entries", &count_entries, "left"_array, "leaf"_array, "y"_array,
      "weight"_array_or_none,
      "(begin, classes, weight) of the classes in each node, without those it has no rows of.");
  core.def("majority", &majority, "left"_array, "counts"_array,
           "The largest class of each node; a node without rows has its parent's.");
  core.def("frequencies", &frequencies, "left"_array, "counts"_array, "smoothing"_a,
           "weight_unit"_a,
           "Shares of the classes in each node; a node without rows has its parent's.");
  core.def("moments", &moments, "left"_array, "leaf"_array, "target"_array, "weight"_array_or_none,
           "(rows, mean, sum of squared distances from it) of the targets in each node.");
  core.def("gather_moments", &gather_moments, "left"_array, "leaf"_array, "weight"_array,
           "mean"_array, "squares"_array, "The same of all nodes by what is known of leaves.");
  core.def("ends_of_cells", &ends_of_cells, "cell"_array, "values"_array, "n_cells"_a,
           "The smallest and the largest value of each cell, infinite where it has none.");
  core.def("sums_of_cells", &sums_of_cells, "cell"_array, "values"_array, "largest"_array, "n"_a,
           "Sums of finite values by cell as two whole numbers each, which add up.");
  core.def("numbers_of_sums", &numbers_of_sums, "sums"_array, "largest"_array, "n"_a,
           "What such sums mean.");
  core.def("smoothed_means", &smoothed_means, "left"_array, "rows"_array, "mean"_array,
           "smoothing"_a, "weight_unit"_a, "Means that are drawn to those of the parents.");
}

}  // namespace certree::bindings
