// Python bindings of prunings.
#include "bind.hpp"
#include "prunings/prunings.hpp"

namespace certree::bindings {
namespace {

SplitGains split_gains(const Shape& tree, const Doubles& cost_gain, const Doubles& leaf_gain) {
  return {sized("cost_gain", cost_gain, tree.size()), sized("leaf_gain", leaf_gain, tree.size())};
}

auto critical_prices(const Ints& left, const Doubles& cost_gain, const Doubles& leaf_gain) {
  const Shape tree = shape(left);
  const SplitGains gains = split_gains(tree, cost_gain, leaf_gain);
  return run([&](auto critical) { certree::critical_prices(tree, gains, critical); },
             Column<double>(tree.size()));
}

auto fragment_pruning(const Ints& left, const Doubles& cost_gain, const Doubles& leaf_gain,
                      const Doubles& chain_leaves, const Doubles& size_penalty,
                      const Doubles& node_penalty) {
  const Shape tree = shape(left);
  const FragmentPenalty penalty{split_gains(tree, cost_gain, leaf_gain),
                                sized("chain_leaves", chain_leaves, tree.size()),
                                sized("size_penalty", size_penalty, tree.size()),
                                sized("node_penalty", node_penalty, tree.size())};
  const auto loop = [&](std::span<std::uint8_t> division) {
    certree::fragment_pruning(tree, penalty,
                              {reinterpret_cast<Division*>(division.data()), division.size()});
  };
  return run(loop, Column<std::uint8_t>(tree.size()));
}

auto merge_order(const Ints& left, const Doubles& rise) {
  const Shape tree = shape(left);
  const auto rises = sized("rise", rise, tree.size());
  return run([&](auto step) { certree::merge_order(tree, rises, step); },
             Column<std::int32_t>(tree.size()));
}

}  // namespace

void bind_prunings(nb::module_& core) {
  core.def("find_critical_prices", &critical_prices, "left"_array, "cost_gain"_array,
           "leaf_gain"_array,
           "Return, for each node, the smallest price of a leaf (alpha) at which the optimal "
           "pruning does "
           "not split it; -1 at leaves.");
  core.def(
      "find_fragment_pruning", &fragment_pruning, "left"_array, "cost_gain"_array,
      "leaf_gain"_array, "chain_leaves"_array, "size_penalty"_array, "node_penalty"_array,
      "Find the pruning with the smallest cost plus penalty of its cheapest root fragment. Return "
      "for each node 2 if pruning and fragment split it, 1 if only the pruning does, else 0.");
  core.def(
      "find_merge_order", &merge_order, "left"_array, "rise"_array,
      "Merge pairs of sibling leaves, always those whose parent has the smallest rise. Return the "
      "number of the merge that makes each node a leaf; -1 at leaves.");
}

}  // namespace certree::bindings
