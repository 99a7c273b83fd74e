// The doors of the votes.
#include "bind.hpp"

namespace certree::bindings {
namespace {

auto push_down(const Ints& left, const Doubles& weight, const std::optional<Ints>& label,
               const std::optional<Doubles2>& frequency, std::int64_t n_classes) {
  const Shape tree = shape(left);
  const auto weights = sized("weight", weight, tree.size());
  const Values votes = values(tree, label, frequency ? &*frequency : nullptr, n_classes);
  return run([&](auto score) { certree::push_down(tree, weights, votes, score); },
             Rows<double>(tree.size(), n_classes));
}

auto push_down_to(const Ints& left, const Doubles& weight, const std::optional<Doubles>& rest,
                  const std::optional<Ints>& label, const Frequency& frequency,
                  std::int64_t n_classes, const Ints& nodes) {
  const Shape tree = shape(left);
  const auto weights = sized("weight", weight, tree.size());
  const auto more = sized("rest", rest, tree.size());
  const Values votes = values(tree, label, frequency, n_classes);
  expect_codes("nodes", view(nodes), std::ssize(tree.children));
  if (std::ranges::adjacent_find(view(nodes), std::greater_equal()) != view(nodes).end())
    throw std::invalid_argument("nodes must be ascending and distinct");
  const auto loop = [&](auto score) {
    certree::push_down_to(tree, weights, more, votes, view(nodes), score);
  };
  return run(loop, Rows<double>(nodes.size(), n_classes));
}

auto make_monotone(const Ints& left, const Ints& feature, const In<std::int8_t, 1>& slope,
                   const Doubles& value) {
  const Shape tree = shape(left);
  const auto features = sized("feature", feature, tree.size());
  const auto from = sized("value", value, tree.size());
  expect_codes("feature", features, static_cast<std::int64_t>(slope.size()));
  return run([&](auto to) { certree::make_monotone(tree, features, view(slope), from, to); },
             Column<double>(tree.size()));
}

}  // namespace

void bind_votes(nb::module_& core) {
  core.def("push_down", &push_down, "left"_array, "weight"_array, "label"_array_or_none,
           "frequency"_array_or_none, "n_classes"_a,
           "Path sums of the weighted votes of the nodes.");
  core.def("push_down_to", &push_down_to, "left"_array, "weight"_array, "rest"_array_or_none,
           "label"_array_or_none, "frequency"_array_or_none, "n_classes"_a, "nodes"_array,
           "The same at some nodes, which are ascending and weigh more by the rest.");
  core.def("make_monotone", &make_monotone, "left"_array, "feature"_array, "slope"_array,
           "value"_array, "Values of nodes that rise or fall along features in every pruning.");
}

}  // namespace certree::bindings
