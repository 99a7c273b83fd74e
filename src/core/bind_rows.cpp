// Python bindings of row hashes and column sums.
#include "bind_bins.hpp"
#include "rows/column_sums.hpp"
#include "rows/hashes.hpp"

namespace certree::bindings {
namespace {

auto hash_dense(const Features& columns, bool rounded, int n_threads) {
  const std::vector<FeatureValues> values = values_of(columns);
  return run([&](auto hash) { certree::hash_rows(values, rounded, n_threads, hash); },
             PredictedColumn<std::uint64_t>(length_of(columns)));
}

template <class Real>
auto hash_sparse(const Sparse<Real>& given, bool rounded, int n_threads) {
  const SparseRows<Real> table = rows(given);
  return run([&](auto hash) { certree::hash_rows(table, rounded, n_threads, hash); },
             PredictedColumn<std::uint64_t>(table.n_rows()));
}

using Words = In<std::uint64_t, 1>;

auto column_sums(const Features& columns, const Ints& n_categories, const Words& targets,
                 int n_threads) {
  const auto sizes = sized("n_categories", n_categories, columns.size());
  if (std::ranges::any_of(sizes, [](std::int32_t n) { return n < 0; }))
    throw std::invalid_argument("n_categories must not be negative");
  const auto words = sized("targets", targets, length_of(columns));
  const std::vector<FeatureValues> values = values_of(columns);
  ColumnSums sums = run([&] { return certree::column_sums(values, sizes, words, n_threads); });
  return std::tuple(owned(std::move(sums.numbers)), owned(std::move(sums.n_rows)),
                    owned(std::move(sums.words)));
}

auto order_of_columns(const Words& numbers, const Ints& n_categories, const Words& n_rows,
                      const Words& words) {
  ColumnSums sums;
  const auto copied = [](std::span<const std::uint64_t> values) {
    return std::vector(values.begin(), values.end());
  };
  sums.numbers = copied(view(numbers));
  sums.n_rows = copied(view(n_rows));
  sums.words = copied(sized("words", words, n_rows.size()));
  sums.category_start = {0};
  for (const std::int32_t n : sized("n_categories", n_categories, numbers.size()))
    sums.category_start.push_back(sums.category_start.back() + std::max(n, 0));
  expect_length("n_rows", n_rows.size(), static_cast<std::size_t>(sums.category_start.back()));
  return owned(certree::order_of_columns(sums));
}

auto number_categories_by_rows(const Words& n_rows, const Words& words) {
  return owned(
      certree::number_categories_by_rows(view(n_rows), sized("words", words, n_rows.size())));
}

}  // namespace

void bind_rows(nb::module_& core) {
  const auto doc = "Hash the values of each row to 64 bits, (n,).";
  core.def("hash_rows", &hash_dense, "columns"_array, "rounded"_a, "n_threads"_a, doc);
  core.def("hash_rows", &hash_sparse<float>, "rows"_array, "rounded"_a, "n_threads"_a, doc);
  core.def("hash_rows", &hash_sparse<double>, "rows"_array, "rounded"_a, "n_threads"_a, doc);
  core.def(
      "sum_columns", &column_sums, "columns"_array, "n_categories"_array, "targets"_array,
      "n_threads"_a,
      "Sum up row hashes: numbers (p,), n_rows and words (sum of n_categories,); see ColumnSums.");
  core.def("order_columns", &order_of_columns, "numbers"_array, "n_categories"_array,
           "n_rows"_array, "words"_array, "Return the columns, (p,), sorted by their sums.");
  core.def("number_categories", &number_categories_by_rows, "n_rows"_array, "words"_array,
           "Return the new code of each category, those with most rows first; ties by words.");
}

}  // namespace certree::bindings
