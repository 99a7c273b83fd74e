// Slopes of losses that boosting lowers.
#pragma once

#include <array>

#include "arrays.hpp"

namespace certree {

// Gradients and Hessians (n_outputs, n) of the log loss of classes (n,): of one output, whose score
// is the log odds of the second of two classes, or of more, whose softmax are probabilities; these
// have Hessians times K / (K - 1). Before that none is below `least`.
void log_loss_slopes(std::span<const std::int32_t> y, Table<const double> scores, double least,
                     Table<double> gradient, Table<double> hessian);

}  // namespace certree
