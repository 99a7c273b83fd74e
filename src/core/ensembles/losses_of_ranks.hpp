// Sums and quantiles over the rows of all ranks, by which losses are scaled and rounds are scored.
// They have the bits of those of one table (losses.hpp).
#pragma once

#include "ensembles/losses.hpp"
#include "grow/whole_numbers.hpp"
#include "interrupt.hpp"
#include "ranks.hpp"

namespace certree {

// The loss of some outputs on the rows of this rank.
struct LossRows {
  Loss loss;
  std::span<const double> y;       // (n,)
  Table<const double> scores;      // (n_outputs, any) of these rows first
  std::span<const double> weight;  // (n,), or empty
};

// Returns the losses in the scale of all rows. n: number of rows on all ranks, by loss.
std::vector<ScaledLoss> scaled_over(Ranks& ranks, std::span<const LossRows> rows,
                                    std::span<const std::int64_t> n);

// Returns for each entry the sum of losses times weights over all ranks. A loss with a bend is
// scaled by these rows. n: number of rows on all ranks, by entry.
std::vector<double> sum_losses_over(Ranks& ranks, std::span<const LossRows> rows,
                                    std::span<const std::int64_t> n);

// Returns the mean loss of the rows of all ranks by their weights.
double mean_loss_over(Ranks& ranks, const LossRows& rows);

// Number of rows on all ranks, and the sum of their weights.
struct RowCount {
  std::int64_t n = 0;
  double weight = 0.0;
};
// Counts sets of rows, of n_rows[i] rows and weights[i] each; weights may be empty on some ranks.
// A null pointer stands for a single process.
std::vector<RowCount> count_rows_over(Ranks* ranks, std::span<const std::int64_t> n_rows,
                                      std::span<const std::span<const double>> weights);

// Returns the sum of numbers as integers; 0 if the largest number of all ranks is infinite.
std::int64_t whole_sum(std::span<const double> numbers, double largest, std::int64_t n);
// Converts such a sum back.
double number_of(std::int64_t whole, double largest, std::int64_t n);

}  // namespace certree
