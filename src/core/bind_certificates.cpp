// Python bindings of certificates.
#include "bind.hpp"
#include "certificates.hpp"

namespace certree::bindings {
namespace {

auto log_masses(const Ints& left, const Ints& label, const Doubles2& log_stop,
                const Doubles2& log_split, const In<double, 3>& log_label) {
  const Shape tree = shape(left);
  const std::size_t n_priors = log_label.shape(0), n_labels = log_label.shape(2);
  const auto stop = sized("log_stop", log_stop, n_priors, tree.size());
  const auto split = sized("log_split", log_split, n_priors, tree.size());
  expect_length("log_label's row", log_label.shape(1), tree.size());
  const auto labels = sized("label", label, tree.size());
  expect_codes("label", labels, static_cast<std::int64_t>(n_labels));
  const LabelledPriors priors{stop,
                              split,
                              {log_label.data(), static_cast<std::int64_t>(n_priors * tree.size()),
                               static_cast<std::int64_t>(n_labels)}};
  return run([&](auto mass) { certree::log_masses(tree, labels, priors, mass); },
             Column<double>(n_priors));
}

double order_statistics_probability(const Doubles& lower, const Doubles& upper) {
  const auto low = view(lower), high = sized("upper", upper, lower.size());
  for (const auto bounds : {low, high})
    if (!std::ranges::is_sorted(bounds) || bounds.empty() || !(bounds.front() >= 0) ||
        !(bounds.back() <= 1))
      throw std::invalid_argument("lower and upper must ascend in 0 .. 1");
  return run([&] { return certree::order_statistics_probability(low, high); });
}

}  // namespace

void bind_certificates(nb::module_& core) {
  core.def(
      "compute_log_masses", &log_masses, "left"_array, "label"_array, "log_stop"_array,
      "log_split"_array, "log_label"_array,
      "Return, for each prior, the log mass of all labelled prunings that label every leaf of the "
      "tree as label does.");
  core.def("compute_order_probability", &order_statistics_probability, "lower"_array, "upper"_array,
           "Return the probability that the k-th smallest of n uniform draws lies in "
           "[lower[k], upper[k]] for all k.");
}

}  // namespace certree::bindings
