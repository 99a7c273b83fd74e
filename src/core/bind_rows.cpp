// Python bindings of row hashes and samples.
#include "bind.hpp"
#include "rows/hashes.hpp"

namespace certree::bindings {
namespace {

auto hash_rows(const Doubles2& rows, bool rounded, int n_threads) {
  const Table<const double> table = view(rows);
  return run([&](auto hash) { certree::hash_rows(table, rounded, n_threads, hash); },
             PredictedColumn<std::uint64_t>(rows.shape(0)));
}

template <class Real>
auto hash_sparse(const Sparse<Real>& given, bool rounded, int n_threads) {
  const SparseRows<Real> table = rows(given);
  return run([&](auto hash) { certree::hash_rows(table, rounded, n_threads, hash); },
             PredictedColumn<std::uint64_t>(table.n_rows()));
}

}  // namespace

void bind_rows(nb::module_& core) {
  const auto doc = "A 64-bit hash of what each row holds.";
  core.def("hash_rows", &hash_rows, "rows"_array, "rounded"_a, "n_threads"_a, doc);
  core.def("hash_rows", &hash_sparse<float>, "rows"_array, "rounded"_a, "n_threads"_a, doc);
  core.def("hash_rows", &hash_sparse<double>, "rows"_array, "rounded"_a, "n_threads"_a, doc);
}

}  // namespace certree::bindings
