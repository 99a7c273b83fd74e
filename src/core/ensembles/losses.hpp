// Losses that boosting lowers.
//
// Scores are (n_outputs, n): of classes the log odds of the second of two, or of more those whose
// softmax are probabilities; of counts and of amounts logs of predictions, else these.
// Targets are classes 0, 1, ... or numbers. Where rows are fewer than scores, these are the first.
#pragma once

#include "arrays.hpp"

namespace certree {

// Only runs know gradients that are given, and which rows are ranked together (ranking.hpp).
enum class LossKind { classes, squared, quantile, huber, poisson, gamma, tweedie, custom, ranking };

struct Loss {
  LossKind kind;
  // Quantile that the loss is of, or of distances that are squared; power of the mean that is the
  // variance.
  double parameter;
};

// Whether it is a likelihood's negative log (nats) as it stands, so that gradients are in no unit
// that rows decide together.
constexpr bool has_known_scale(const Loss& loss) {
  return loss.kind == LossKind::classes || loss.kind == LossKind::poisson ||
         loss.kind == LossKind::gamma;
}

// Whether its dispersion follows from gradients, and not from losses.
constexpr bool has_gradient_dispersion(const Loss& loss) {
  return loss.kind == LossKind::tweedie || loss.kind == LossKind::custom ||
         loss.kind == LossKind::ranking;
}

// A loss with the one number that all rows decide together: of a quantile the mean distance of
// scores from targets, of Tweedie's loss the mean information, which gradients are in units of; of
// Huber's loss the quantile of the distances at which it bends; 1 of others.
struct ScaledLoss : Loss {
  double scale = 1.0;
};

// Whether there is such a number.
constexpr bool has_scale(const Loss& loss) {
  return loss.kind == LossKind::quantile || loss.kind == LossKind::huber ||
         loss.kind == LossKind::tweedie;
}

ScaledLoss scaled(const Loss& loss, std::span<const double> y, Table<const double> scores);

// The numbers of rows (n,) of which it is the mean, or a quantile.
void scale_terms(const Loss& loss, std::span<const double> y, Table<const double> scores,
                 std::span<double> terms);

// Gradients and Hessians (n_outputs, n). Hessians are kept from 0, where a step would have no end.
// Those of more than two classes are multiplied by K / (K - 1). Of losses with a kink, or with a
// straight part, they are those of parabolas that touch the loss at the score and lie above it.
// What is custom is known by its gradients alone, which who asks for rounds has taken.
void compute_gradients(const ScaledLoss& loss, std::span<const double> y,
                       Table<const double> scores, Table<double> gradient, Table<double> hessian);

// Loss of each row, (n,).
void losses_of(const ScaledLoss& loss, std::span<const double> y, Table<const double> scores,
               std::span<double> losses);

// The same of rows that bend a loss themselves.
void losses_of(const Loss& loss, std::span<const double> y, Table<const double> scores,
               std::span<double> losses);

// What gradients are divided by to be those of a likelihood's negative log (nats). gradient,
// hessian: the gradients of rows, times their weights.
double dispersion_of(const ScaledLoss& loss, std::span<const double> y, Table<const double> scores,
                     std::span<const double> weight, Table<const double> gradient,
                     Table<const double> hessian);

// The numbers of rows of which sums tell it: losses times weights; or squared gradients over
// weights, and Hessians; or none. room: memory for them, which has to last.
std::vector<std::span<const double>> dispersion_terms(
    const ScaledLoss& loss, std::span<const double> y, Table<const double> scores,
    std::span<const double> weight, Table<const double> gradient, Table<const double> hessian,
    Buffer<double>& room);

// The same by these sums, and that of the weights.
double dispersion_of_sums(const ScaledLoss& loss, std::span<const double> sums, double weight);

// The same of gradients of one output alone, (n,), times the weights of their rows: of a
// likelihood's negative log squared gradients are on average as large as Hessians (Wedderburn,
// "Quasi-likelihood functions", 1974).
double estimate_gradient_dispersion(std::span<const double> gradient,
                                    std::span<const double> hessian,
                                    std::span<const double> weight);

// Mean loss of rows by their weights, if there are some; in whatever order they come. losses: room
// for that of each row.
double mean_loss(const Loss& loss, std::span<const double> y, Table<const double> scores,
                 std::span<const double> weight, std::span<double> losses);

// Without signs; infinite where one is none.
double largest_number(std::span<const double> numbers);

// Sum of losses by the weights of their rows, if there are some; in whatever order they come.
double sum_of(std::span<const double> losses, std::span<const double> weight);

}  // namespace certree
