// What doors of losses and of rounds take.
#pragma once

#include "bind_bins.hpp"
#include "ensembles/losses.hpp"
#include "ensembles/round.hpp"

namespace certree::door {

// A quantile, or the power of the mean that is the variance.
inline bool is_known(LossKind kind, double parameter) {
  if (kind == LossKind::tweedie) return parameter > 1.0 && parameter < 2.0;
  return parameter >= 0.0 && parameter <= 1.0;
}

inline Loss loss_of(const std::string& name, double parameter) {
  constexpr std::array<std::pair<const char*, LossKind>, 7> kinds{
      {{"classes", LossKind::classes},
       {"squared_error", LossKind::squared},
       {"quantile", LossKind::quantile},
       {"huber", LossKind::huber},
       {"poisson", LossKind::poisson},
       {"gamma", LossKind::gamma},
       {"tweedie", LossKind::tweedie}}};
  for (const auto& [known, kind] : kinds)
    if (name == known && is_known(kind, parameter)) return {kind, parameter};
  throw std::invalid_argument("no loss is " + name + " of " + std::to_string(parameter));
}

// Scores (n_outputs, n) that a loss is of.
inline Table<const double> scores_of(const Loss& loss, const Doubles2& scores, std::size_t n) {
  const std::size_t n_outputs = scores.shape(0);
  if (n_outputs == 0 || (n_outputs > 1 && loss.kind != LossKind::classes))
    throw std::invalid_argument("a loss of numbers takes scores of one output");
  return sized("scores", scores, n_outputs, n);
}

inline void expect_probabilities(std::span<const double> stop) {
  if (!std::ranges::all_of(stop, [](double s) { return s > 0.0 && s < 1.0; }))
    throw std::invalid_argument("stop must lie between 0 and 1");
}

// How the prunings of a tree of so many nodes are weighed.
inline RoundVote vote_of(double shrinkage, std::span<const Voters> voters, double others,
                         double curvature, const Doubles& stop, const Ints& feature,
                         const Slopes& slope, std::size_t n_nodes) {
  expect_probabilities(view(stop));
  RoundVote vote{shrinkage, voters, others, curvature, view(stop), {}, {}};
  if (slope) {
    vote.feature = sized("feature", feature, n_nodes);
    vote.slope = view(*slope);
    expect_codes("feature", vote.feature, std::ssize(vote.slope));
  }
  return vote;
}

}  // namespace certree::door
