// Python bindings of polynomials over bits.
#include <bit>

#include "bind.hpp"
#include "boolean/spectrum.hpp"
#include "boolean/transform.hpp"

namespace certree::bindings {
namespace {

constexpr std::size_t kMostEntries = std::size_t{1} << 26;

auto spectrum_of_trees(const Ints& bit, const Ints& left, const In<std::int64_t, 1>& root,
                       const Doubles2& value, bool left_is_one, const Doubles& mean,
                       std::int64_t degree, std::int64_t most_terms, int n_threads) {
  const std::size_t m = left.size();
  const auto roots = roots_of(root, m);
  if (m > 0) shape(left);
  const BitTrees trees{sized("bit", bit, m),     view(left),  roots,
                       sized("value", value, m), left_is_one, view(mean)};
  if (trees.mean.empty()) throw std::invalid_argument("there must be a bit");
  expect_codes("bit", trees.bit, std::ssize(trees.mean));
  if (!std::ranges::all_of(trees.mean, [](double mu) { return std::abs(mu) < 1.0; }))
    throw std::invalid_argument("mean must lie between -1 and 1");
  Polynomial spectrum =
      run([&] { return compute_spectrum(trees, {degree, most_terms}, n_threads); });
  const std::int64_t k = spectrum.size();
  return std::tuple(owned(std::move(spectrum.masks), k, spectrum.n_words),
                    owned(std::move(spectrum.coefficients), k, spectrum.n_outputs));
}

auto walsh_hadamard(const Doubles& values, double scale, int n_threads) {
  const auto input = view(values);
  if (input.size() > kMostEntries || !std::has_single_bit(input.size()))
    throw std::invalid_argument("values must have 1, 2, 4, ... or 2^26 entries, got " +
                                std::to_string(input.size()));
  const auto loop = [&](auto transformed) {
    certree::walsh_hadamard(input, scale, n_threads, transformed);
  };
  return run(loop, Column<double>(input.size()));
}

auto multiply_features(const Doubles2& feature, const In<std::int64_t, 1>& start, const Ints& bits,
                       int n_threads) {
  const auto rows = view(feature);
  const auto begin = starts_of("start", start, bits.size());
  expect_codes("bits", view(bits), rows.n_rows);
  const auto loop = [&](auto product) {
    certree::multiply_features(rows, begin, view(bits), n_threads, product);
  };
  return run(loop, Rows<double>(begin.size() - 1, rows.width));
}

}  // namespace

void bind_boolean(nb::module_& core) {
  core.def("compute_tree_spectrum", &spectrum_of_trees, "bit"_array, "left"_array, "root"_array,
           "value"_array, "left_is_one"_a, "mean"_array, "degree"_a, "most_terms"_a, "n_threads"_a,
           "Return the Fourier spectrum of the sum of trees over bits: the masks of sets of bits, "
           "(k, n_words), ascending, and their coefficients, (k, n_outputs).");
  core.def("walsh_hadamard", &walsh_hadamard, "values"_array, "scale"_a, "n_threads"_a,
           "Return the Walsh-Hadamard transform of values, multiplied by scale.");
  core.def("multiply_features", &multiply_features, "feature"_array, "start"_array, "bits"_array,
           "n_threads"_a,
           "Return, for k sets of bits, the product of their rows of feature (n_bits, n): (k, n).");
}

}  // namespace certree::bindings
