// Python bindings of node statistics.
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
  auto entries = run([&] { return certree::count_entries(tree, rows, classes); });
  return std::tuple(owned(std::move(entries.begin)), owned(std::move(entries.classes)),
                    owned(std::move(entries.weight)));
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

// leaf: numbers of the leaves that have rows; weight, mean, squares: their moments.
auto combine_moments(const Ints& left, const Ints& leaf, const Doubles& weight, const Doubles& mean,
                     const Doubles& squares) {
  const Shape tree = shape(left);
  const std::size_t n = leaf.size();
  expect_codes("leaf", view(leaf), std::ssize(tree.children));
  const std::array leaf_moments{sized("weight", weight, n), sized("mean", mean, n),
                                sized("squares", squares, n)};
  const auto loop = [&](auto total, auto means, auto all_squares) {
    const std::array<std::span<double>, 3> columns{total, means, all_squares};
    for (std::size_t k = 0; k < 3; ++k) {
      fill(columns[k], 0.0);
      for (std::size_t i = 0; i < n; ++i)
        columns[k][static_cast<std::size_t>(leaf.data()[i])] = leaf_moments[k][i];
    }
    certree::combine_moments(tree, total, means, all_squares);
  };
  return run(loop, Column<double>(tree.size()), Column<double>(tree.size()),
             Column<double>(tree.size()));
}

auto group_ranges(const Ints& group, const Doubles& values, std::int64_t n_groups) {
  expect_codes("group", view(group), n_groups);
  const auto numbers = sized("values", values, group.size());
  return run([&](auto ranges) { certree::group_ranges(view(group), numbers, ranges); },
             Rows<double>(static_cast<std::size_t>(n_groups), 2));
}

auto exact_sums(const Ints& group, const Doubles& values, const Doubles& largest, std::int64_t n) {
  expect_codes("group", view(group), static_cast<std::int64_t>(largest.size()));
  const auto numbers = sized("values", values, group.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!(std::abs(numbers[i]) <= largest.data()[group.data()[i]]))
      throw std::invalid_argument("values must be at most the largest ones of their groups");
  return run([&](auto sums) { certree::exact_sums(view(group), numbers, view(largest), n, sums); },
             Rows<std::int64_t>(largest.size(), 2));
}

auto exact_sums_to_doubles(const In<std::int64_t, 2>& sums, const Doubles& largest,
                           std::int64_t n) {
  const auto table = sized("sums", sums, largest.size(), 2);
  return run([&](auto totals) { certree::exact_sums_to_doubles(table, view(largest), n, totals); },
             Column<double>(largest.size()));
}

auto majority(const Ints& left, const ClassCounts& counts) {
  const Shape tree = shape(left);
  const Counts weights = counts_of("counts", counts, tree);
  return run([&](auto label) { certree::majority(tree, weights, label); },
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
  core.def("count_classes", &count, "left"_array, "leaf"_array, "y"_array, "weight"_array_or_none,
           "n_classes"_a,
           "Sum up row weights by node and class, (m, n_classes). leaf: the leaf of each row.");
  core.def(
      "count_class_entries", &count_entries, "left"_array, "leaf"_array, "y"_array,
      "weight"_array_or_none,
      "Sum up row weights by node and class as sparse entries: node v has the classes and weights "
      "begin[v], ..., begin[v + 1] - 1. Return (begin, classes, weight).");
  core.def(
      "find_majority_classes", &majority, "left"_array, "counts"_array,
      "Return the class of the largest weight in each node; a node without rows has its parent's.");
  core.def(
      "compute_class_frequencies", &frequencies, "left"_array, "counts"_array, "smoothing"_a,
      "weight_unit"_a,
      "Return class probabilities of each node, (m, n_classes), smoothed towards its parent's.");
  core.def(
      "compute_moments", &moments, "left"_array, "leaf"_array, "target"_array,
      "weight"_array_or_none,
      "Return (weight, mean, sum of squared distances from the mean) of the targets in each node.");
  core.def("add_moments", &combine_moments, "left"_array, "leaf"_array, "weight"_array,
           "mean"_array, "squares"_array,
           "Return the moments of all nodes, as moments() does, from those of the leaves given.");
  core.def(
      "find_group_ranges", &group_ranges, "group"_array, "values"_array, "n_groups"_a,
      "Return the smallest and the largest value of each group of rows, (n_groups, 2); (inf, -inf) "
      "for an empty group. group: the group of each row.");
  core.def(
      "sum_groups_exactly", &exact_sums, "group"_array, "values"_array, "largest"_array, "n"_a,
      "Sum up finite values by group of rows, as two integers per group whose sums over blocks of "
      "rows do not depend on the blocks. largest: bound of the absolute values of each group; n: "
      "bound of the number of rows.");
  core.def("convert_exact_sums", &exact_sums_to_doubles, "sums"_array, "largest"_array, "n"_a,
           "Convert the integers of sum_groups_exactly() to float64, with the same largest and n.");
  core.def("smooth_means", &smoothed_means, "left"_array, "rows"_array, "mean"_array, "smoothing"_a,
           "weight_unit"_a, "Return the mean of each node, smoothed towards its parent's.");
}

}  // namespace certree::bindings
