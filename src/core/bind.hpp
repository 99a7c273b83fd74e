// What the Python bindings of the core share. Only the files bind*.* use Python.
//
// A binding takes arrays and returns new arrays. The array type of a parameter checks dtype, rank
// and memory order; nothing is converted. The binding itself checks whatever could make a loop read
// out of bounds. That columns make up a valid tree is checked once, by certree.Tree. Then the
// binding calls run(), which allocates the results and calls the loop without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <array>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#include "grow/feature_order.hpp"
#include "interrupt.hpp"
#include "votes.hpp"
#include "weights/weights.hpp"

namespace certree::bindings {

namespace nb = nanobind;
using namespace nb::literals;

void bind_rows(nb::module_& core);
void bind_tree(nb::module_& core);
void bind_grow(nb::module_& core);
void bind_binned(nb::module_& core);
void bind_forest_leaves(nb::module_& core);
void bind_stats(nb::module_& core);
void bind_weights(nb::module_& core);
void bind_prunings(nb::module_& core);
void bind_votes(nb::module_& core);
void bind_tune(nb::module_& core);
void bind_certificates(nb::module_& core);
void bind_ensembles(nb::module_& core);
void bind_parts(nb::module_& core);
void bind_boolean(nb::module_& core);
void bind_explain(nb::module_& core);

// -- arguments

template <class T, int rank>
using In = nb::ndarray<const T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
// An array of the caller that is written to.
template <class T, int rank>
using InOut = nb::ndarray<T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
using Ints = In<std::int32_t, 1>;
using Doubles = In<double, 1>;
using Doubles2 = In<double, 2>;

// Annotates a parameter as an array, or as an array or None.
inline auto operator""_array(const char* name, std::size_t) { return nb::arg(name).noconvert(); }
inline auto operator""_array_or_none(const char* name, std::size_t) {
  return nb::arg(name).noconvert().none();
}

template <class T>
std::span<const T> view(const In<T, 1>& column) {
  return {column.data(), column.size()};
}
template <class T>
Table<const T> view(const In<T, 2>& table) {
  return {table.data(), static_cast<std::int64_t>(table.shape(0)),
          static_cast<std::int64_t>(table.shape(1))};
}
template <class T>
std::span<T> view(const InOut<T, 1>& column) {
  return {column.data(), column.size()};
}
template <class T>
Table<T> view(const InOut<T, 2>& table) {
  return {table.data(), static_cast<std::int64_t>(table.shape(0)),
          static_cast<std::int64_t>(table.shape(1))};
}

// Throws std::invalid_argument unless an array has the expected length.
inline void expect_length(std::string_view name, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) +
                                ", expected " + std::to_string(expected));
}

// Returns a view of an array after checking its number of rows (and of columns).
template <class Array>
auto sized(const char* name, const Array& array, std::size_t n_rows) {
  expect_length(name, array.shape(0), n_rows);
  return view(array);
}
template <class Array>
auto sized(const char* name, const Array& array, std::size_t n_rows, std::size_t width) {
  expect_length(name, array.shape(0), n_rows);
  expect_length(std::string(name) + "'s row", array.shape(1), width);
  return view(array);
}
// Returns an empty view for an array that is None.
template <class Array>
auto sized(const char* name, const std::optional<Array>& array, std::size_t n_rows) {
  return array ? sized(name, *array, n_rows) : decltype(view(*array)){};
}

// Returns whether all codes lie in 0 .. n_codes - 1. It never stops early, so that the loop is
// vectorised.
inline bool are_codes(std::span<const std::int32_t> codes, std::int64_t n_codes) {
  const auto most = static_cast<std::uint32_t>(std::clamp<std::int64_t>(n_codes, 0, 1LL << 31));
  unsigned beyond = 0;
  for (const std::int32_t c : codes) beyond |= static_cast<std::uint32_t>(c) >= most;
  return beyond == 0;
}

// Throws std::invalid_argument unless all codes lie in 0 .. n_codes - 1.
inline void expect_codes(const char* name, std::span<const std::int32_t> codes,
                         std::int64_t n_codes) {
  if (!are_codes(codes, n_codes))
    throw std::invalid_argument(std::string(name) + " must lie in 0 .. " +
                                std::to_string(n_codes - 1));
}

// Returns where each of several lists starts in one array of n_entries, in which they follow each
// other. Throws std::invalid_argument unless starts ascend from 0 to n_entries.
inline std::span<const std::int64_t> starts_of(const std::string& name,
                                               const In<std::int64_t, 1>& start,
                                               std::size_t n_entries) {
  const auto starts = view(start);
  if (starts.empty() || starts.front() != 0 || !std::ranges::is_sorted(starts) ||
      !std::cmp_equal(starts.back(), n_entries))
    throw std::invalid_argument(name + " must ascend from 0 to " + std::to_string(n_entries));
  return starts;
}
// Throws std::invalid_argument, too, unless there are n_lists lists.
inline std::span<const std::int64_t> starts_of(const std::string& name,
                                               const In<std::int64_t, 1>& start,
                                               std::size_t n_lists, std::size_t n_entries) {
  expect_length(name, start.shape(0), n_lists + 1);
  return starts_of(name, start, n_entries);
}

// Returns the root of each tree. Throws std::invalid_argument unless roots ascend from node 0, or
// there are neither roots nor nodes.
inline std::span<const std::int64_t> roots_of(const In<std::int64_t, 1>& root,
                                              std::size_t n_nodes) {
  const auto roots = view(root);
  if (roots.empty() ? n_nodes > 0
                    : roots.front() != 0 || !std::ranges::is_sorted(roots) ||
                          !std::cmp_less(roots.back(), n_nodes))
    throw std::invalid_argument("root must ascend from 0 and be nodes, of which there are " +
                                std::to_string(n_nodes));
  return roots;
}

// Returns the order in which growth compares features; none: that of the table.
inline FeatureOrder order_of_features(const std::optional<Ints>& order, std::size_t p) {
  const auto given = sized("order of features", order, p);
  expect_codes("order of features", given, static_cast<std::int64_t>(p));
  std::vector<bool> has(p);
  for (const std::int32_t j : given) {
    if (has[static_cast<std::size_t>(j)])
      throw std::invalid_argument("order of features must hold each of them once");
    has[static_cast<std::size_t>(j)] = true;
  }
  return {given, p};
}

// A CSR table: start of each row, feature and value of each stored value, number of features.
template <class Real>
using Sparse = std::tuple<In<std::int64_t, 1>, Ints, In<Real, 1>, std::int64_t>;

template <class Real>
SparseRows<Real> rows(const Sparse<Real>& csr) {
  const auto& [start, feature, value, width] = csr;
  const auto starts = starts_of("starts of rows", start, feature.size());
  expect_codes("features of values", view(feature), width);
  return {starts, view(feature), sized("values", value, feature.size()), width};
}

// Returns the shape of trees after checking that children are nodes behind their parents.
inline Shape shape(const Ints& left) {
  if (left.size() == 0 || left.size() > 2147483647u)
    throw std::invalid_argument("a tree has between 1 and 2147483647 nodes, got " +
                                std::to_string(left.size()));
  const auto m = static_cast<std::int32_t>(left.size());
  for (std::int32_t v = 0; v < m; ++v) {
    const std::int32_t child = left.data()[v];
    if (child != kLeaf && (child <= v || child >= m - 1))
      throw std::invalid_argument("left[" + std::to_string(v) + "] = " + std::to_string(child) +
                                  " is neither -1 nor a node after its parent with a sibling");
  }
  return {view(left)};
}

using Flags = In<std::uint8_t, 1>;

// Returns a view of the columns of a tree, checking only their lengths: predictions of single rows
// must be fast, and certree.Tree has checked the values. category_start is empty if no node has a
// set of categories.
inline TreeView tree_of(const Ints& feature, const Doubles& threshold, const Ints& left,
                        const Flags& default_left, const In<std::int64_t, 1>& category_start,
                        const Ints& categories) {
  const std::size_t m = left.size();
  TreeView tree{sized("feature", feature, m),
                sized("threshold", threshold, m),
                view(left),
                sized("default_left", default_left, m),
                {},
                view(categories)};
  if (categories.size() > 0) tree.category_start = sized("category_start", category_start, m + 1);
  return tree;
}

// Returns a view of a table after checking that int32 can number its rows.
template <class Real>
Table<const Real> rows(const In<Real, 2>& X) {
  if (X.shape(0) > 2147483647u) throw std::invalid_argument("X has more than 2147483647 rows");
  return view(X);
}

// -- class counts: a table, or (begin, classes, weight, number of classes)

using Entries = std::tuple<In<std::int64_t, 1>, Ints, Doubles, std::int64_t>;
using ClassCounts = std::variant<Doubles2, Entries>;

inline Counts counts_of(const std::string& name, const ClassCounts& counts, const Shape& tree) {
  if (const auto* table = std::get_if<Doubles2>(&counts)) {
    const auto rows = sized(name.c_str(), *table, tree.size());
    if (rows.width == 0) throw std::invalid_argument(name + " has no classes");
    return {rows, {}, rows.width};
  }
  const auto& [begin, classes, weight, n_classes] = std::get<Entries>(counts);
  if (n_classes < 1) throw std::invalid_argument(name + " has no classes");
  const auto starts = starts_of(name + "'s begin", begin, tree.size(), classes.size());
  expect_codes((name + "'s classes").c_str(), view(classes), n_classes);
  return {{}, {starts, view(classes), sized("weight", weight, classes.size())}, n_classes};
}

// -- posteriors over prunings, and the votes of nodes

inline PosteriorFamily family_of(const Ints& left, const Doubles2& gains, const Doubles& stop,
                                 const Doubles& split) {
  const Shape tree = shape(left);
  return {tree, sized("gains", gains, tree.size()), sized("stop", stop, tree.size()),
          sized("split", split, tree.size())};
}

inline PruningMode mode_of(bool prune) {
  return prune ? PruningMode::single : PruningMode::average;
}

// Class probabilities of every node as a table, or what to compute them from: class counts, the
// number of smoothing rows, and the mean weight of a row.
using SmoothedEntries = std::tuple<Entries, double, double>;
using Frequency = std::optional<std::variant<Doubles2, SmoothedEntries>>;

inline Votes votes_of(const Shape& tree, const std::optional<Ints>& label,
                      const Doubles2* frequency, std::int64_t n_classes) {
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  if (label.has_value() == (frequency != nullptr))
    throw std::invalid_argument("expected either label or frequency");
  Votes result;
  result.n_classes = n_classes;
  if (frequency) {
    result.frequency =
        sized("frequency", *frequency, tree.size(), static_cast<std::size_t>(n_classes));
  } else {
    result.label = sized("label", *label, tree.size());
    expect_codes("label", result.label, n_classes);
  }
  return result;
}

inline Votes votes_of(const Shape& tree, const std::optional<Ints>& label,
                      const Frequency& frequency, std::int64_t n_classes) {
  const auto* entries = frequency ? std::get_if<SmoothedEntries>(&*frequency) : nullptr;
  if (!entries)
    return votes_of(tree, label, frequency ? std::get_if<Doubles2>(&*frequency) : nullptr,
                    n_classes);
  if (label) throw std::invalid_argument("expected either label or frequency");
  Votes result;
  result.counts = counts_of("frequency", std::get<Entries>(*entries), tree);
  result.smoothing = {std::get<1>(*entries), std::get<2>(*entries)};
  result.n_classes = result.counts.n_classes;
  expect_length("frequency's row", static_cast<std::size_t>(result.n_classes),
                static_cast<std::size_t>(n_classes));
  return result;
}

// -- results: arrays that own their memory. They are read-only, except for predictions.

template <class T, int rank = 1>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<rank>>;

// An array that the core allocates and fills, and then hands over to Python, read-only if Handed is
// const.
template <class Handed, int rank>
class Result {
  using T = std::remove_const_t<Handed>;

 public:
  explicit Result(std::integral auto... lengths)
      : shape_{static_cast<std::size_t>(lengths)...}, data_(make_buffer<T>(lengths...)) {
    static_assert(sizeof...(lengths) == rank);
  }

  auto view() {
    if constexpr (rank == 1)
      return std::span<T>(data_.get(), shape_[0]);
    else
      return Table<T>{data_.get(), static_cast<std::int64_t>(shape_[0]),
                      static_cast<std::int64_t>(shape_[1])};
  }
  Out<Handed, rank> hand_over() {
    T* data = data_.release();
    nb::capsule owner(data, [](void* memory) noexcept { FreeMemory()(memory); });
    return Out<Handed, rank>(data, rank, shape_.data(), owner);
  }

 private:
  std::array<std::size_t, rank> shape_;
  Buffer<T> data_;
};

template <class T>
using Column = Result<const T, 1>;
template <class T>
using Rows = Result<const T, 2>;
// Predictions, which users may write to.
template <class T>
using PredictedColumn = Result<T, 1>;
template <class T>
using PredictedRows = Result<T, 2>;

// -- interrupts

// The thread that runs Python's signal handlers; set when the module is loaded, and after a fork.
inline unsigned long main_thread = 0;
// Number of interrupt checks of the last call of this thread.
inline constinit thread_local std::int64_t n_checks_of_last_call = 0;
// When the next calls of this thread check; tests change it.
inline constinit thread_local CheckSchedule check_schedule{};
// Where the next calls of this thread keep their large arrays; empty: in memory.
inline thread_local std::string next_scratch_folder;

// A call from Python. It stops when a signal handler raises, as that of Ctrl-C does.
class PythonCall : public Call {
 public:
  PythonCall() : Call(check_schedule, next_scratch_folder) {}
  ~PythonCall() override {
    n_checks_of_last_call = n_checks();
    // The checks of later calls go on from those of this one, until a test's interrupt has come.
    std::int64_t& interrupt_at = check_schedule.interrupt_at;
    if (interrupt_at == kNeverInterrupts) return;
    interrupt_at = n_checks() < interrupt_at ? interrupt_at - n_checks() : kNeverInterrupts;
  }

  // Raises the exception of a signal handler, if there was one.
  void raise_if_stopped() const {
    if (raised_) throw nb::python_error(*raised_);
  }
  // Raises the exception of the signal handler, or KeyboardInterrupt if a test stopped the call.
  [[noreturn]] void raise() const {
    raise_if_stopped();
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }

 private:
  bool has_stop_request() override {
    if (!is_main_) return false;
    const nb::gil_scoped_acquire hold;
    if (PyErr_CheckSignals() == 0) return false;
    raised_.emplace();
    return true;
  }

  const bool is_main_ = PyThread_get_thread_ident() == main_thread;
  std::optional<nb::python_error> raised_;
};

// Runs a loop without the GIL, so that Ctrl-C can interrupt it, and returns its result. A signal
// handler may call the core while a loop runs. The inner loop then runs in a thread of its own, as
// loops have thread-local scratch memory.
template <class Loop>
auto run_without_gil(const Loop& loop) {
  PythonCall call;
  const auto work = [&] {
    const CallScope scope(&call);
    return loop();
  };
  const auto work_without_gil = [&] {
    const nb::gil_scoped_release release;
    return thread_work.call ? std::async(std::launch::async, work).get() : work();
  };
  try {
    if constexpr (std::is_void_v<decltype(loop())>) {
      work_without_gil();
      call.raise_if_stopped();
    } else {
      auto value = work_without_gil();
      call.raise_if_stopped();
      return value;
    }
  } catch (const Interrupted&) {
    call.raise();
  }
}

// Calls loop(views of the results...) without the GIL. Returns the results as arrays, followed by
// the return value of the loop if it has one; a single value is not wrapped in a tuple.
template <class Loop, class... Results>
auto run(const Loop& loop, Results... results) {
  const auto fill_results = [&] { return loop(results.view()...); };
  constexpr bool returns = !std::is_void_v<decltype(fill_results())>;
  if constexpr (returns && sizeof...(results) == 0) {
    return run_without_gil(fill_results);
  } else if constexpr (returns) {
    auto value = run_without_gil(fill_results);
    return std::tuple(results.hand_over()..., value);
  } else {
    run_without_gil(fill_results);
    if constexpr (sizeof...(results) == 1)
      return (results.hand_over(), ...);
    else
      return std::tuple(results.hand_over()...);
  }
}

// Converts a vector to an array of the given lengths (of its own length if there are none), without
// a copy.
template <class T, class... Lengths>
auto owned(std::vector<T>&& values, Lengths... lengths) {
  constexpr int rank = sizeof...(lengths) == 0 ? 1 : sizeof...(lengths);
  std::array<std::size_t, rank> shape{static_cast<std::size_t>(lengths)...};
  if constexpr (sizeof...(lengths) == 0) shape[0] = values.size();
  auto* heap = new std::vector<T>(std::move(values));
  nb::capsule owner(heap, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Out<const T, rank>(heap->data(), rank, shape.data(), owner);
}

}  // namespace certree::bindings
