// Python bindings of the search for inverse temperatures.
#include "bind.hpp"
#include "tune.hpp"

namespace certree::bindings {
namespace {

VoteLoss loss_named(const std::string& name) {
  if (name == "error") return VoteLoss::error;
  if (name == "log_loss") return VoteLoss::log_loss;
  if (name == "squared") return VoteLoss::squared;
  throw std::invalid_argument("unknown loss \"" + name + "\"");
}

ThetaGrid grid_of(const PosteriorFamily& family, const Doubles2& theta, bool prune) {
  expect_length("theta's row", theta.shape(1), family.n_terms());
  return {view(theta), mode_of(prune)};
}

// Votes of nodes, and the loss and the validation rows by which they are compared.
struct Validation {
  VoteLoss loss;
  Counts rows;
  Votes votes;
};

Validation validation_of(const PosteriorFamily& family, const std::optional<Ints>& label,
                         const Frequency& frequency, const ClassCounts& validation,
                         const std::string& loss_name) {
  const VoteLoss loss = loss_named(loss_name);
  const Counts rows = counts_of("validation", validation, family.tree);
  const bool is_numeric = loss == VoteLoss::squared;
  if (is_numeric && !rows.is_table()) throw std::invalid_argument("validation must be a table");
  if (is_numeric) expect_length("validation's row", static_cast<std::size_t>(rows.n_classes), 3);
  return {loss, rows, votes_of(family.tree, label, frequency, is_numeric ? 1 : rows.n_classes)};
}

auto score_grid(const Ints& left, const Doubles2& gains, const Doubles& stop, const Doubles& split,
                const Doubles2& theta, bool prune, const std::optional<Ints>& label,
                const Frequency& frequency, const ClassCounts& validation,
                const std::string& loss_name, int n_threads) {
  const PosteriorFamily family = family_of(left, gains, stop, split);
  const ThetaGrid grid = grid_of(family, theta, prune);
  const auto [kind, rows, votes] = validation_of(family, label, frequency, validation, loss_name);
  const auto loop = [&](auto loss) {
    certree::score_grid(family, grid, votes, rows, kind, n_threads, loss);
  };
  return run(loop, Column<double>(theta.shape(0)));
}

auto validation_votes(const Ints& left, const Doubles2& gains, const Doubles& stop,
                      const Doubles& split, const Doubles2& theta, bool prune,
                      const std::optional<Ints>& label, const Frequency& frequency,
                      const ClassCounts& validation, const std::string& loss_name, int n_threads) {
  const PosteriorFamily family = family_of(left, gains, stop, split);
  const ThetaGrid grid = grid_of(family, theta, prune);
  const auto [kind, rows, votes] = validation_of(family, label, frequency, validation, loss_name);
  if (theta.shape(0) == 0) throw std::invalid_argument("theta has no rows");
  if (kind == VoteLoss::error)
    throw std::invalid_argument("loss must be \"log_loss\" or \"squared\", got \"error\"");
  auto result =
      run([&] { return certree::validation_votes(family, grid, votes, rows, kind, n_threads); });
  const std::size_t n_rows = result.rows.size();
  return std::tuple(owned(std::move(result.rows)), owned(std::move(result.truth)),
                    owned(std::move(result.vote), n_rows, theta.shape(0)));
}

auto fit_mixture(const Doubles& rows, const Doubles2& probability, std::int64_t n_steps) {
  const auto table = sized("probability", probability, rows.size());
  if (probability.size() == 0) throw std::invalid_argument("probability is empty");
  const auto loop = [&](auto proportion) {
    return certree::fit_mixture(view(rows), table, n_steps, proportion);
  };
  return run(loop, Column<double>(probability.shape(1)));
}

}  // namespace

void bind_tune(nb::module_& core) {
  core.def(
      "score_grid", &score_grid, "left"_array, "gains"_array, "stop"_array, "split"_array,
      "theta"_array, "prune"_a, "label"_array_or_none, "frequency"_array_or_none,
      "validation"_array, "loss"_a, "n_threads"_a,
      "Return the loss of the vote on validation rows under the posterior of each row of theta. "
      "validation: class counts of the validation rows by node, or their (weight, mean, squares).");
  core.def("compute_validation_votes", &validation_votes, "left"_array, "gains"_array, "stop"_array,
           "split"_array, "theta"_array, "prune"_a, "label"_array_or_none,
           "frequency"_array_or_none, "validation"_array, "loss"_a, "n_threads"_a,
           "Return (rows, truth, vote) of validation rows by leaf and class: their weight, what "
           "the vote "
           "should be, and the vote for their class (or the prediction) under each row of theta.");
  core.def("fit_mixture", &fit_mixture, "rows"_array, "probability"_array, "n_steps"_a,
           "Fit the proportions of a mixture of posteriors by EM. probability: (n, g) of the true "
           "class under each posterior. Return the proportions (g,) and the log loss.");
}

}  // namespace certree::bindings
