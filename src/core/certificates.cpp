// The prior mass of a classifier: of all prunings that label every point as it does.
#include "certificates.hpp"

namespace certree {

void log_masses(Shape tree, std::span<const std::int32_t> label, const LabelledPriors& priors,
                std::span<double> mass) {
  constexpr std::int32_t kMixed = -1;
  const std::size_t m = tree.size();
  const auto common = make_buffer<std::int32_t>(m);  // the label of all leaves below
  for (const std::size_t v : turns_down(m)) {
    const std::size_t l = tree.left(v);
    if (tree.is_leaf(v))
      common[v] = label[v];
    else
      common[v] = common[l] == common[l + 1] ? common[l] : kMixed;
  }
  const auto below = make_buffer<double>(m);
  for (std::size_t j = 0; j < mass.size(); ++j) {
    const double* const log_stop = priors.log_stop.row(j);
    const double* const log_split = priors.log_split.row(j);
    for (const std::size_t v : turns_down(m)) {
      const std::size_t l = tree.left(v);
      const double split = tree.is_leaf(v) ? -kInfinity : log_split[v] + (below[l] + below[l + 1]);
      if (common[v] == kMixed) {
        below[v] = split;
        continue;
      }
      const double stop = log_stop[v] + priors.log_label.row(j * m + v)[common[v]];
      const double larger = std::max(stop, split), smaller = std::min(stop, split);
      below[v] = smaller == -kInfinity ? larger : larger + std::log1p(std::exp(smaller - larger));
    }
    mass[j] = below[0];
  }
}

}  // namespace certree
