// Ranking the documents of queries: gradients of LambdaMART (Burges, "From RankNet to LambdaRank to
// LambdaMART: an overview", 2010) and NDCG (Järvelin and Kekäläinen, 2002).
//
// A document of relevance y gains 2^y - 1, which is divided by log2(1 + rank) and added up over a
// query (DCG); divided by the DCG of the best order it is NDCG.
#pragma once

#include "arrays.hpp"

namespace certree {

// What is asked about queries.
struct RankingGoal {
  std::int64_t truncation;  // a pair counts of which one is ranked so high
  std::int64_t at;          // NDCG is that of so many documents; 0: of all
};

// Rows that are documents of queries, in runs of equal numbers.
struct Queries {
  RankingGoal goal;
  std::vector<std::size_t> first;  // (n_queries + 1,) row of each query
  std::vector<double> gain;        // (n,) of the rows, as fractions of the query's best DCG
  std::vector<double> best;        // (n_queries,) DCG at `at` of the best order, in the same unit
  std::vector<double> discount;    // of each rank
};

Queries queries_of(const RankingGoal& goal, std::span<const std::int32_t> number,
                   std::span<const double> y);

// gradient, hessian: (n,) sums over the pairs of a row of what a pair's order is worth in DCG times
// the gradients of its logistic loss, by the weights of rows. Documents of equal score are taken in
// the order of the rows. The unit is one in which the mean Hessian by weight is 1.
void compute_ranking_gradients(const Queries& queries, const double* score,
                               std::span<const double> weight, int n_threads,
                               std::span<double> gradient, std::span<double> hessian);

// 1 - NDCG of each query, times its weight, summed up; documents of equal score share their places.
// A query without gains has NDCG 1. The weight of a query is that of its first row.
double ranking_loss(const Queries& queries, const double* score, std::span<const double> weight);

// The mean.
double mean_ranking_loss(const Queries& queries, const double* score,
                         std::span<const double> weight);

}  // namespace certree
