// The doors of the core: arrays in, new arrays out. Only the files bind*.cpp know Python.
//
// The array type of a parameter is its check (dtype, rank, order; nothing is converted). What would
// read out of bounds is checked at the door, what makes columns a tree is checked once, by
// certree.Tree. A door checks, and then run() does what all doors do.
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
void bind_leaves(nb::module_& core);
void bind_stats(nb::module_& core);
void bind_weights(nb::module_& core);
void bind_prunings(nb::module_& core);
void bind_votes(nb::module_& core);
void bind_tune(nb::module_& core);
void bind_certificates(nb::module_& core);
void bind_ensembles(nb::module_& core);
void bind_parts(nb::module_& core);
void bind_cells_of_parts(nb::module_& core);
void bind_boolean(nb::module_& core);
void bind_explain(nb::module_& core);

// -- what comes in

template <class T, int rank>
using In = nb::ndarray<const T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
// What is written to.
template <class T, int rank>
using InOut = nb::ndarray<T, nb::ndim<rank>, nb::c_contig, nb::device::cpu>;
using Ints = In<std::int32_t, 1>;
using Doubles = In<double, 1>;
using Doubles2 = In<double, 2>;

// An argument that is an array, and one that may be None.
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

inline void expect_length(std::string_view name, std::size_t got, std::size_t expected) {
  if (got != expected)
    throw std::invalid_argument(std::string(name) + " has length " + std::to_string(got) +
                                ", expected " + std::to_string(expected));
}

// A view of an array with so many rows.
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
// An empty one where there is no array.
template <class Array>
auto sized(const char* name, const std::optional<Array>& array, std::size_t n_rows) {
  return array ? sized(name, *array, n_rows) : decltype(view(*array)){};
}

// Whether all codes lie in 0 .. n_codes - 1. Looked through to the end, so that lanes can be used.
inline bool are_codes(std::span<const std::int32_t> codes, std::int64_t n_codes) {
  const auto most = static_cast<std::uint32_t>(std::clamp<std::int64_t>(n_codes, 0, 1LL << 31));
  unsigned beyond = 0;
  for (const std::int32_t c : codes) beyond |= static_cast<std::uint32_t>(c) >= most;
  return beyond == 0;
}

inline void expect_codes(const char* name, std::span<const std::int32_t> codes,
                         std::int64_t n_codes) {
  if (!are_codes(codes, n_codes))
    throw std::invalid_argument(std::string(name) + " must lie in 0 .. " +
                                std::to_string(n_codes - 1));
}

// Starts of rows, features and values of what is stored, and the number of features.
template <class Real>
using Sparse = std::tuple<In<std::int64_t, 1>, Ints, In<Real, 1>, std::int64_t>;

template <class Real>
SparseRows<Real> rows(const Sparse<Real>& given) {
  const auto& [start, feature, value, width] = given;
  const auto starts = view(start);
  if (starts.empty() || starts.front() != 0 || !std::ranges::is_sorted(starts) ||
      !std::cmp_equal(starts.back(), feature.size()))
    throw std::invalid_argument("starts of rows must ascend from 0 to the number of values");
  expect_codes("features of values", view(feature), width);
  return {starts, view(feature), sized("values", value, feature.size()), width};
}

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

// Single rows must be fast, so the columns are not looked through here: Tree has done it.
// category_start is empty where no node compares categories.
inline TreeView tree_of(const Ints& feature, const Doubles& threshold, const Ints& left,
                        const Flags& missing_left, const In<std::int64_t, 1>& category_start,
                        const Ints& categories) {
  const std::size_t m = left.size();
  TreeView tree{sized("feature", feature, m),
                sized("threshold", threshold, m),
                view(left),
                sized("missing_left", missing_left, m),
                {},
                view(categories)};
  if (categories.size() > 0) tree.category_start = sized("category_start", category_start, m + 1);
  return tree;
}

// X, whose rows are numbered in int32.
template <class Real>
Table<const Real> rows(const In<Real, 2>& X) {
  if (X.shape(0) > 2147483647u) throw std::invalid_argument("X has more than 2147483647 rows");
  return view(X);
}

// -- class counts: a table, or (begin, classes, weight, number of classes)

using Entries = std::tuple<In<std::int64_t, 1>, Ints, Doubles, std::int64_t>;
using ClassCounts = std::variant<Doubles2, Entries>;

inline Counts counts_of(const std::string& name, const ClassCounts& given, const Shape& tree) {
  if (const auto* table = std::get_if<Doubles2>(&given)) {
    const auto rows = sized(name.c_str(), *table, tree.size());
    if (rows.width == 0) throw std::invalid_argument(name + " has no classes");
    return {rows, {}, rows.width};
  }
  const auto& [begin, classes, weight, n_classes] = std::get<Entries>(given);
  if (n_classes < 1) throw std::invalid_argument(name + " has no classes");
  const auto starts = sized((name + "'s begin").c_str(), begin, tree.size() + 1);
  if (starts.front() != 0 || !std::ranges::is_sorted(starts) ||
      !std::cmp_equal(starts.back(), classes.size()))
    throw std::invalid_argument(name + "'s begin must rise from 0 to the number of entries");
  expect_codes((name + "'s classes").c_str(), view(classes), n_classes);
  return {{}, {starts, view(classes), sized("weight", weight, classes.size())}, n_classes};
}

// -- posteriors, and what nodes vote for

inline Terms terms(const Ints& left, const Doubles2& gains, const Doubles& stop,
                   const Doubles& split) {
  const Shape tree = shape(left);
  return {tree, sized("gains", gains, tree.size()), sized("stop", stop, tree.size()),
          sized("split", split, tree.size())};
}

inline Rule rule_of(bool prune) { return prune ? Rule::prune : Rule::average; }

// Shares of classes in every node, or what they are made of: counts, the smoothing, and the mean
// weight of a row.
using SmoothedEntries = std::tuple<Entries, double, double>;
using Frequency = std::optional<std::variant<Doubles2, SmoothedEntries>>;

inline Values values(const Shape& tree, const std::optional<Ints>& label, const Doubles2* frequency,
                     std::int64_t n_classes) {
  if (n_classes < 1) throw std::invalid_argument("n_classes must be at least 1");
  if (label.has_value() == (frequency != nullptr))
    throw std::invalid_argument("expected either label or frequency");
  Values result;
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

inline Values values(const Shape& tree, const std::optional<Ints>& label,
                     const Frequency& frequency, std::int64_t n_classes) {
  const auto* entries = frequency ? std::get_if<SmoothedEntries>(&*frequency) : nullptr;
  if (!entries)
    return values(tree, label, frequency ? std::get_if<Doubles2>(&*frequency) : nullptr, n_classes);
  if (label) throw std::invalid_argument("expected either label or frequency");
  Values result;
  result.counts = counts_of("frequency", std::get<Entries>(*entries), tree);
  result.smoothing = {std::get<1>(*entries), std::get<2>(*entries)};
  result.n_classes = result.counts.n_classes;
  expect_length("frequency's row", static_cast<std::size_t>(result.n_classes),
                static_cast<std::size_t>(n_classes));
  return result;
}

// -- what goes out: arrays that own their memory, read-only but for those that users are given

template <class T, int rank = 1>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<rank>>;

// A result of the core's own making: allocated, filled once, then handed over as T, or const T.
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
    nb::capsule owner(data, [](void* memory) noexcept { Free()(memory); });
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
// Predictions, which whoever asks for them may write to.
template <class T>
using PredictedColumn = Result<T, 1>;
template <class T>
using PredictedRows = Result<T, 2>;

// -- what stops a call

// The thread that runs the handlers of signals; set when the module is made, and after a fork.
inline unsigned long main_thread = 0;
// How often the last call of a thread looked whether to stop.
inline constinit thread_local std::int64_t last_looks = 0;
// How the calls of a thread look, which tests tell.
inline constinit thread_local Looking looking{};

// A call that stops where the handler of a signal raises, as Ctrl-C does.
class PythonCall : public Call {
 public:
  PythonCall() : Call(looking) {}
  ~PythonCall() override {
    last_looks = looks();
    if (looking.stops_at == kNeverStops) return;
    looking.stops_at = looks() < looking.stops_at ? looking.stops_at - looks() : kNeverStops;
  }

  void raise_if_stopped() const {
    if (raised_) throw nb::python_error(*raised_);
  }
  // What stopped it, or Ctrl-C where a test did.
  [[noreturn]] void raise() const {
    raise_if_stopped();
    PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }

 private:
  bool should_stop() override {
    if (!is_main_) return false;
    const nb::gil_scoped_acquire hold;
    if (PyErr_CheckSignals() == 0) return false;
    raised_.emplace();
    return true;
  }

  const bool is_main_ = PyThread_get_thread_ident() == main_thread;
  std::optional<nb::python_error> raised_;
};

// Runs a loop without the interpreter's lock. In the middle of a loop a handler may call the core
// again; the inner loop gets a thread of its own, as loops keep scratch memory by thread.
template <class Loop>
auto unlocked(const Loop& loop) {
  PythonCall call;
  const auto working = [&] {
    const CallScope here(&call);
    return loop();
  };
  const auto released = [&] {
    const nb::gil_scoped_release release;
    return thread_work.call ? std::async(std::launch::async, working).get() : working();
  };
  try {
    if constexpr (std::is_void_v<decltype(loop())>) {
      released();
      call.raise_if_stopped();
    } else {
      auto value = released();
      call.raise_if_stopped();
      return value;
    }
  } catch (const Interrupted&) {
    call.raise();
  }
}

// What every door does once it has checked: lets the loop fill the results without the
// interpreter's lock, and hands them over, behind them what the loop returns.
template <class Loop, class... Results>
auto run(const Loop& loop, Results... results) {
  const auto filling = [&] { return loop(results.view()...); };
  constexpr bool returns = !std::is_void_v<decltype(filling())>;
  if constexpr (returns && sizeof...(results) == 0) {
    return unlocked(filling);
  } else if constexpr (returns) {
    auto value = unlocked(filling);
    return std::tuple(results.hand_over()..., value);
  } else {
    unlocked(filling);
    if constexpr (sizeof...(results) == 1)
      return (results.hand_over(), ...);
    else
      return std::tuple(results.hand_over()...);
  }
}

// Vectors that a loop returns are handed over without a copy.
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
