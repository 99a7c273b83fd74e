// The doors of the tree.
#include "bind.hpp"

namespace certree::door {
namespace {

// category_start is empty where no node compares categories.
template <class Real>
auto apply(const Ints& feature, const Doubles& threshold, const Ints& left,
           const In<std::uint8_t, 1>& missing_left, const In<std::int64_t, 1>& category_start,
           const Ints& categories, const In<Real, 2>& X, int n_threads) {
  // Single rows must be fast, so the columns are not looked through here: Tree has done it.
  const std::size_t m = left.size();
  TreeView tree{sized("feature", feature, m),
                sized("threshold", threshold, m),
                view(left),
                sized("missing_left", missing_left, m),
                {},
                view(categories)};
  if (categories.size() > 0) tree.category_start = sized("category_start", category_start, m + 1);
  const auto x = rows(X);
  return run([&](auto leaf) { certree::apply(tree, x, n_threads, leaf); },
             Column<std::int32_t>(x.n_rows));
}

auto depths(const Ints& left, const Ints& chain) {
  const Shape tree = shape(left);
  const auto chains = sized("chain", chain, tree.size());
  return run([&](auto depth) { certree::depths(tree, chains, depth); },
             Column<std::int64_t>(tree.size()));
}

template <class Real>
void bind_for(nb::module_& core) {
  core.def("apply", &apply<Real>, "feature"_array, "threshold"_array, "left"_array,
           "missing_left"_array, "category_start"_array, "categories"_array, "X"_array,
           "n_threads"_a, "The leaf that each row of X reaches.");
}

}  // namespace

void bind_tree(nb::module_& core) {
  bind_for<float>(core);
  bind_for<double>(core);
  core.def("depths", &depths, "left"_array, "chain"_array, "Number of cells above each node.");
}

}  // namespace certree::door
