// Python bindings of votes.
#include "bind.hpp"

namespace certree::bindings {
namespace {

auto push_down(const Ints& left, const Doubles& weight, const std::optional<Ints>& label,
               const std::optional<Doubles2>& frequency, std::int64_t n_classes) {
  const Shape tree = shape(left);
  const auto weights = sized("weight", weight, tree.size());
  const Votes votes = votes_of(tree, label, frequency ? &*frequency : nullptr, n_classes);
  return run([&](auto score) { certree::push_down(tree, weights, votes, score); },
             Rows<double>(tree.size(), n_classes));
}

auto push_down_to(const Ints& left, const Doubles& weight, const std::optional<Doubles>& rest,
                  const std::optional<Ints>& label, const Frequency& frequency,
                  std::int64_t n_classes, const Ints& nodes) {
  const Shape tree = shape(left);
  const auto weights = sized("weight", weight, tree.size());
  const auto further_weights = sized("rest", rest, tree.size());
  const Votes votes = votes_of(tree, label, frequency, n_classes);
  expect_codes("nodes", view(nodes), std::ssize(tree.children));
  if (std::ranges::adjacent_find(view(nodes), std::greater_equal()) != view(nodes).end())
    throw std::invalid_argument("nodes must be ascending and distinct");
  const auto loop = [&](auto score) {
    certree::push_down_to(tree, weights, further_weights, votes, view(nodes), score);
  };
  return run(loop, Rows<double>(nodes.size(), n_classes));
}

auto make_monotone(const Ints& left, const Ints& feature, const In<std::int8_t, 1>& monotonic_signs,
                   const Doubles& value) {
  const Shape tree = shape(left);
  const auto features = sized("feature", feature, tree.size());
  const auto values = sized("value", value, tree.size());
  expect_codes("feature", features, static_cast<std::int64_t>(monotonic_signs.size()));
  const auto loop = [&](auto result) {
    certree::make_monotone(tree, features, view(monotonic_signs), values, result);
  };
  return run(loop, Column<double>(tree.size()));
}

}  // namespace

void bind_votes(nb::module_& core) {
  core.def(
      "score_nodes", &push_down, "left"_array, "weight"_array, "label"_array_or_none,
      "frequency"_array_or_none, "n_classes"_a,
      "Return the score of every node, (m, n_classes): the weighted votes summed along its path "
      "from the root.");
  core.def(
      "score_some_nodes", &push_down_to, "left"_array, "weight"_array, "rest"_array_or_none,
      "label"_array_or_none, "frequency"_array_or_none, "n_classes"_a, "nodes"_array,
      "Return the scores of the given nodes, ascending, as push_down() does. rest: further weight "
      "of a node in its own score alone.");
  core.def("make_monotone", &make_monotone, "left"_array, "feature"_array, "monotonic_signs"_array,
           "value"_array,
           "Enforce monotonic constraints (monotonic_signs, 1: rising, -1: falling, 0: none) on "
           "the values of "
           "nodes, for the leaves of every pruning.");
}

}  // namespace certree::bindings
