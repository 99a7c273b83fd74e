// The doors of the statistics.
#include "bind.hpp"
#include "stats/stats.hpp"

namespace certree::door {
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

auto majority(const Ints& left, const ClassCounts& counts) {
  const Shape tree = shape(left);
  const Counts known = counts_of("counts", counts, tree);
  return run([&](auto label) { certree::majority(tree, known, label); },
             Column<std::int32_t>(tree.size()));
}

auto frequencies(const Ints& left, const Doubles2& counts, double smoothing) {
  const Shape tree = shape(left);
  const auto table = counts_of("counts", counts, tree).table;
  return run([&](auto frequency) { certree::frequencies(tree, table, smoothing, frequency); },
             Rows<double>(table.n_rows, table.width));
}

auto smoothed_means(const Ints& left, const Doubles& rows, const Doubles& mean, double smoothing) {
  const Shape tree = shape(left);
  const auto totals = sized("rows", rows, tree.size());
  const auto means = sized("mean", mean, tree.size());
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
           "Shares of the classes in each node; a node without rows has its parent's.");
  core.def("moments", &moments, "left"_array, "leaf"_array, "target"_array, "weight"_array_or_none,
           "(rows, mean, sum of squared distances from it) of the targets in each node.");
  core.def("smoothed_means", &smoothed_means, "left"_array, "rows"_array, "mean"_array,
           "smoothing"_a, "Means that are drawn to those of the parents.");
}

}  // namespace certree::door
