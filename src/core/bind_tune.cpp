// The doors of the tuning.
#include "bind.hpp"
#include "tune.hpp"

namespace certree::bindings {
namespace {

Loss loss_named(const std::string& name) {
  if (name == "error") return Loss::error;
  if (name == "log_loss") return Loss::log_loss;
  if (name == "squared") return Loss::squared;
  throw std::invalid_argument("unknown loss \"" + name + "\"");
}

Grid grid(const Terms& posterior, const Doubles2& theta, bool prune) {
  expect_length("theta's row", theta.shape(1), posterior.n_terms());
  return {view(theta), rule_of(prune)};
}

// What a vote is judged by.
struct Judging {
  Loss loss;
  Counts rows;
  Values votes;
};

Judging judging_of(const Terms& posterior, const std::optional<Ints>& label,
                   const Frequency& frequency, const ClassCounts& judging,
                   const std::string& loss_name) {
  const Loss loss = loss_named(loss_name);
  const Counts rows = counts_of("judging", judging, posterior.tree);
  const bool numbers = loss == Loss::squared;
  if (numbers && !rows.is_table()) throw std::invalid_argument("judging must be a table");
  if (numbers) expect_length("judging's row", static_cast<std::size_t>(rows.n_classes), 3);
  return {loss, rows, values(posterior.tree, label, frequency, numbers ? 1 : rows.n_classes)};
}

auto score_grid(const Ints& left, const Doubles2& gains, const Doubles& stop, const Doubles& split,
                const Doubles2& theta, bool prune, const std::optional<Ints>& label,
                const Frequency& frequency, const ClassCounts& judging,
                const std::string& loss_name, int n_threads) {
  const Terms posterior = terms(left, gains, stop, split);
  const Grid posteriors = grid(posterior, theta, prune);
  const auto [kind, judged, votes] = judging_of(posterior, label, frequency, judging, loss_name);
  const auto loop = [&](auto loss) {
    certree::score_grid(posterior, posteriors, votes, judged, kind, n_threads, loss);
  };
  return run(loop, Column<double>(theta.shape(0)));
}

auto judged_votes(const Ints& left, const Doubles2& gains, const Doubles& stop,
                  const Doubles& split, const Doubles2& theta, bool prune,
                  const std::optional<Ints>& label, const Frequency& frequency,
                  const ClassCounts& judging, const std::string& loss_name, int n_threads) {
  const Terms posterior = terms(left, gains, stop, split);
  const Grid posteriors = grid(posterior, theta, prune);
  const auto [kind, judged, votes] = judging_of(posterior, label, frequency, judging, loss_name);
  if (theta.shape(0) == 0) throw std::invalid_argument("theta has no rows");
  if (kind == Loss::error) throw std::invalid_argument("errors are no sum over rows of votes");
  auto found = run(
      [&] { return certree::judged_votes(posterior, posteriors, votes, judged, kind, n_threads); });
  const std::size_t n_rows = found.rows.size();
  return std::tuple(owned(std::move(found.rows)), owned(std::move(found.truth)),
                    owned(std::move(found.vote), n_rows, theta.shape(0)));
}

auto mix(const Doubles& rows, const Doubles2& share, std::int64_t n_steps) {
  const auto shares = sized("share", share, rows.size());
  if (share.size() == 0) throw std::invalid_argument("share is empty");
  return run([&](auto proportion) { return certree::mix(view(rows), shares, n_steps, proportion); },
             Column<double>(share.shape(1)));
}

}  // namespace

void bind_tune(nb::module_& core) {
  core.def("score_grid", &score_grid, "left"_array, "gains"_array, "stop"_array, "split"_array,
           "theta"_array, "prune"_a, "label"_array_or_none, "frequency"_array_or_none,
           "judging"_array, "loss"_a, "n_threads"_a, "Loss of the vote under each row of theta.");
  core.def("judged_votes", &judged_votes, "left"_array, "gains"_array, "stop"_array, "split"_array,
           "theta"_array, "prune"_a, "label"_array_or_none, "frequency"_array_or_none,
           "judging"_array, "loss"_a, "n_threads"_a,
           "(rows, truth, vote): what each posterior's vote gives to the judging rows' classes, or "
           "means.");
  core.def("mix", &mix, "rows"_array, "share"_array, "n_steps"_a,
           "(proportion, loss): of the posteriors in the mixture with a small log loss on judging "
           "rows.");
}

}  // namespace certree::bindings
