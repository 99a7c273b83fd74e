// The doors of boosting on rows that lie in parts.
#include <nanobind/stl/vector.h>

#include <bit>
#include <mutex>

#include "bind_bins.hpp"
#include "bind_losses.hpp"
#include "ensembles/draws_of_round.hpp"
#include "ensembles/parts.hpp"
#include "grow/coarser.hpp"
#include "grow/whole_numbers.hpp"

namespace certree::bindings {
namespace {

using Keys = In<std::uint64_t, 1>;
using Wholes = In<std::int64_t, 1>;
using Wholes2 = In<std::int64_t, 2>;

// -- tables of sums, which come and go by the thousands

// Memory of tables that nobody has any more is kept for others. Workers of Dask give it back to the
// system at once, and the first touch of new memory takes longer than what is done with it.
struct SumsMemory {
  Buffer<std::int64_t> data;
  std::size_t size;

  static std::unique_ptr<SumsMemory> take(std::size_t n) {
    const std::scoped_lock lock(turn);
    const auto fits = [&](const auto& one) { return one->size >= n && one->size / 4 <= n; };
    if (const auto at = std::ranges::find_if(kept, fits); at != kept.end()) {
      auto found = std::move(*at);
      kept.erase(at);
      n_kept -= found->size;
      return found;
    }
    const std::size_t size = std::bit_ceil(std::max(n, std::size_t{1}));
    return std::make_unique<SumsMemory>(make_buffer<std::int64_t>(size), size);
  }
  static void give(std::unique_ptr<SumsMemory> one) {
    const std::scoped_lock lock(turn);
    if (n_kept + one->size > kMost) return;
    n_kept += one->size;
    kept.push_back(std::move(one));
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 22;  // 32 MB
  static inline std::mutex turn;
  static inline std::vector<std::unique_ptr<SumsMemory>> kept;
  static inline std::size_t n_kept = 0;
};

// A result in such memory.
class SumsTable {
 public:
  SumsTable(std::integral auto n_rows, std::integral auto width)
      : shape_{static_cast<std::size_t>(n_rows), static_cast<std::size_t>(width)},
        memory_(SumsMemory::take(static_cast<std::size_t>(checked_size(n_rows, width)))) {}

  Table<std::int64_t> view() {
    return {memory_->data.get(), static_cast<std::int64_t>(shape_[0]),
            static_cast<std::int64_t>(shape_[1])};
  }
  Out<const std::int64_t, 2> hand_over() {
    const std::int64_t* const data = memory_->data.get();
    nb::capsule owner(memory_.release(), [](void* memory) noexcept {
      SumsMemory::give(std::unique_ptr<SumsMemory>(static_cast<SumsMemory*>(memory)));
    });
    return Out<const std::int64_t, 2>(data, 2, shape_.data(), owner);
  }

 private:
  std::array<std::size_t, 2> shape_;
  std::unique_ptr<SumsMemory> memory_;
};

auto add_sums(const Wholes2& one, const Wholes2& other) {
  const auto more = sized("other", other, one.shape(0), one.shape(1));
  const auto loop = [&](Table<std::int64_t> sums) {
    std::ranges::transform(view(one).values(), more.values(), sums.values().begin(), std::plus());
  };
  return run(loop, SumsTable(one.shape(0), one.shape(1)));
}

// -- bins

nb::object distinct_values(const Doubles& column) {
  std::vector<double> values;
  const bool are_few = run([&] { return certree::distinct_values(view(column), values); });
  return are_few ? nb::cast(owned(std::move(values))) : nb::none();
}

auto bin_edges(const Doubles& values, std::int64_t most, bool fine_ends) {
  if (most < 2 || most > kMostBins) throw std::invalid_argument("bins must be 2 .. 255");
  std::vector<double> edges;
  const NumberBins wanted{static_cast<std::size_t>(most), fine_ends};
  run([&] { edges = certree::edges_of({values.data(), values.data() + values.size()}, wanted); });
  return owned(std::move(edges));
}

auto encode_numbers(const Doubles& column, const Doubles& edges) {
  if (edges.size() >= kMostBins) throw std::invalid_argument("edges must be fewer than bins");
  const auto loop = [&](auto codes, auto low, auto high) {
    certree::encode_numbers(view(column), view(edges), codes, low, high);
  };
  return run(loop, Column<std::uint8_t>(column.size()), Column<double>(edges.size() + 1),
             Column<double>(edges.size() + 1));
}

auto bin_levels(const Ints& category_codes, const Wholes& n_rows) {
  const auto counts = sized("n_rows", n_rows, category_codes.size());
  std::vector<std::uint8_t> bins;
  const std::size_t n = run([&] { return bin_categories(view(category_codes), counts, bins); });
  return std::tuple(owned(std::move(bins)), n);
}

auto join_bins(const Kept& kept, const Ints& features, std::int64_t n_edges, std::uint64_t key,
               const std::optional<Ints>& order) {
  const std::size_t p = std::get<0>(kept).size();
  const KeptBins bins = kept_bins(kept, p);
  expect_codes("features", view(features), static_cast<std::int64_t>(p));
  if (n_edges < 1) throw std::invalid_argument("n_edges must be at least 1");
  const FeatureOrder feature_order = order_of_features(order, p);
  CoarserBins coarser;
  const auto loop = [&](Table<std::uint8_t> joined) {
    const auto made =
        certree::join_bins(bins, view(features), n_edges, key, feature_order, coarser);
    for (std::size_t i = 0; i < made.size(); ++i)
      std::copy_n(made[i].begin(), made[i].size(), joined.row(i));
  };
  auto joined = run(loop, Rows<std::uint8_t>(features.size(), 256));
  return std::tuple(joined, owned(std::move(coarser.n_bins)), owned(std::move(coarser.low)),
                    owned(std::move(coarser.high)));
}

// -- what a round draws

auto draw_round(std::uint64_t seed, std::int64_t number, std::int64_t n_outputs,
                const Ints& n_features, const Ints& n_thresholds, std::int64_t p,
                const std::optional<Ints>& order) {
  if (number < 0 || n_outputs < 1 || n_features.size() == 0 || n_thresholds.size() == 0 || p < 1)
    throw std::invalid_argument("rounds are numbered from 0, and draw of some features");
  const FeatureOrder feature_order = order_of_features(order, static_cast<std::size_t>(p));
  RoundDraws draws(
      {view(n_features), view(n_thresholds), static_cast<std::size_t>(n_outputs), feature_order},
      seed, number);
  return std::tuple(draws.odd, draws.other_odd, owned(std::move(draws.factors)),
                    owned(std::move(draws.features)), draws.n_edges, draws.key_of_edges);
}

int fixed_unit(double largest, std::int64_t n) { return FixedPoint(largest, n).unit(); }

// -- parts

// Name, parameter and scale of a loss.
using LossOfParts = std::tuple<std::string, double, double>;
// Loss, first of its outputs, how many it has, and its target.
using GoalOfPart = std::tuple<LossOfParts, std::int64_t, std::int64_t, std::int64_t>;
// Goals, y, weight, keys, scores.
using RowsOfPart =
    std::tuple<std::vector<GoalOfPart>, Doubles2, std::optional<Doubles>, Keys, Doubles2>;
// Odd numbers, subsample, factors, the least key where it alone grows, and the first of the goals
// that a tree grows for, and how many these are.
using DrawsOfPart = std::tuple<std::uint64_t, std::uint64_t, double, Doubles,
                               std::optional<std::uint64_t>, std::tuple<std::size_t, std::size_t>>;

ScaledLoss scaled_loss(const LossOfParts& given) {
  const auto& [name, parameter, scale] = given;
  return {loss_of(name, parameter), scale};
}

struct GivenRows {
  std::vector<PartGoal> goals;
  PartRows rows;  // of these goals
};

std::unique_ptr<GivenRows> rows_of(const RowsOfPart& given) {
  const auto& [goals, y, weight, keys, scores] = given;
  auto made = std::make_unique<GivenRows>();
  const std::size_t n = y.shape(1), n_outputs = scores.shape(0);
  if (n > 2147483647u) throw std::invalid_argument("a part has more than 2147483647 rows");
  for (const auto& [loss, first, n_of, target] : goals) {
    made->goals.push_back({scaled_loss(loss), first, n_of, target});
    if (n_of > 1 && made->goals.back().loss.kind != LossKind::classes)
      throw std::invalid_argument("a loss of numbers takes scores of one output");
    if (target < 0 || std::cmp_greater_equal(target, y.shape(0)))
      throw std::invalid_argument("goals are those of targets");
  }
  expect_each_output_once(made->goals, static_cast<std::int64_t>(n_outputs));
  made->rows = {made->goals, view(y), sized("weight", weight, n), sized("keys", keys, n),
                sized("scores", scores, n_outputs, n)};
  return made;
}

PartDraws draws_of(const DrawsOfPart& given, const PartRows& rows) {
  const auto& [odd, other_odd, subsample, factors, least, grown_for] = given;
  const auto& [first, n_goals] = grown_for;
  if (!(subsample > 0.0)) throw std::invalid_argument("subsample must be above 0");
  if (n_goals < 1 || first >= rows.goals.size() || n_goals > rows.goals.size() - first)
    throw std::invalid_argument("trees grow for goals of the rows");
  std::int64_t n_outputs = 0;
  for (const PartGoal& goal : rows.goals.subspan(first, n_goals)) n_outputs += goal.n_outputs;
  return {odd,
          other_odd,
          subsample,
          sized("factors", factors, n_outputs > 1 ? static_cast<std::size_t>(n_outputs) : 0),
          least.has_value(),
          least.value_or(0),
          first,
          n_goals};
}

auto part_largest(const RowsOfPart& given, const DrawsOfPart& drawn) {
  const auto known = rows_of(given);
  const PartRows& rows = known->rows;
  const PartDraws draws = draws_of(drawn, rows);
  PartLargest made;
  run([&] { made = certree::part_largest(rows, draws); });
  return std::tuple(owned(std::move(made.largest)), made.n_growing, made.least);
}

// Largest gradient and Hessian of the tree, number of growing rows, largest terms of the
// dispersion of each goal, number of rows.
using Largest = std::tuple<double, double, std::int64_t, Doubles, std::int64_t>;

auto part_items(const RowsOfPart& given, const DrawsOfPart& drawn, const Largest& largest,
                const InOut<std::int32_t, 1>& order, const InOut<std::int64_t, 2>& items) {
  const auto known = rows_of(given);
  const PartRows& rows = known->rows;
  const PartDraws draws = draws_of(drawn, rows);
  const auto& [gradient, hessian, n_growing, terms, n] = largest;
  const auto of_dispersion = sized("terms", terms, 2 * rows.goals.size());
  const auto to_order = sized("order", order, rows.keys.size());
  const auto to_items = sized("items", items, rows.keys.size(), 2);
  PartItems made;
  run([&] {
    made = certree::part_items(rows, draws, {gradient, hessian, n_growing, of_dispersion, n},
                               to_order, to_items);
  });
  return std::tuple(made.n_growing, std::vector<std::int64_t>(made.total.begin(), made.total.end()),
                    std::move(made.of_dispersion));
}

void part_add_steps(const Doubles2& before, const Ints& leaf, const Doubles2& steps,
                    const InOut<double, 2>& scores) {
  const std::size_t n_outputs = before.shape(0), n = before.shape(1);
  expect_codes("leaf", sized("leaf", leaf, n), static_cast<std::int64_t>(steps.shape(0)));
  const auto of_nodes = sized("steps", steps, steps.shape(0), n_outputs);
  const auto to = sized("scores", scores, n_outputs, n);
  run([&] { certree::part_add_steps(view(before), view(leaf), of_nodes, to); });
}

auto scale_terms(const LossOfParts& given, const Doubles& y, const Doubles2& scores) {
  const ScaledLoss loss = scaled_loss(given);
  if (!has_scale(loss)) throw std::invalid_argument("gradients of the loss take no scale");
  const auto before = scores_of(loss, scores, y.size());
  return run([&](auto terms) { certree::scale_terms(loss, view(y), before, terms); },
             Column<double>(y.size()));
}

auto scaled_losses(const LossOfParts& given, const Doubles& y, const Doubles2& scores) {
  const ScaledLoss loss = scaled_loss(given);
  const auto before = scores_of(loss, scores, y.size());
  return run([&](auto of_rows) { losses_of(loss, view(y), before, of_rows); },
             Column<double>(y.size()));
}

double dispersion_of_sums(const LossOfParts& given, const Doubles& sums, double weight) {
  return certree::dispersion_of_sums(scaled_loss(given), sized("sums", sums, 2), weight);
}

// Places of rows in an order.
void expect_cells(const Wholes2& cells, std::size_t n) {
  const auto table = sized("cells", cells, cells.shape(0), 2);
  for (std::int64_t c = 0; c < table.n_rows; ++c)
    if (table.row(c)[0] < 0 || table.row(c)[0] > table.row(c)[1] ||
        std::cmp_greater(table.row(c)[1], n))
      throw std::invalid_argument("cells must begin and end in 0 .. " + std::to_string(n));
}

// Rows of cells in an order.
void expect_rows(const Table<const std::int64_t>& cells, std::span<const std::int32_t> order,
                 std::size_t n) {
  for (std::int64_t c = 0; c < cells.n_rows; ++c) {
    const std::int64_t* const range = cells.row(c);
    expect_codes("order",
                 order.subspan(static_cast<std::size_t>(range[0]),
                               static_cast<std::size_t>(range[1] - range[0])),
                 static_cast<std::int64_t>(n));
  }
}

// Features, numbers of bins, places of codes, and numbers of places.
using LayoutOfParts = std::tuple<Ints, Ints, Codes, Ints>;

PartLayout layout_of(const LayoutOfParts& given, std::size_t p) {
  const auto& [features, n_bins, place, n_places] = given;
  const std::size_t k = features.size();
  expect_codes("features", view(features), static_cast<std::int64_t>(p));
  expect_codes("n_bins", sized("n_bins", n_bins, p), kMostBins + 1);
  const PartLayout layout{view(features), view(n_bins), sized("place", place, k, 256),
                          sized("n_places", n_places, k)};
  for (std::size_t i = 0; i < k; ++i)
    if (const std::int32_t n = layout.n_places[i];
        n > 256 || *std::max_element(layout.place.row(i), layout.place.row(i) + 256) >= n)
      throw std::invalid_argument("place must lie in 0 .. n_places - 1, and these be at most 256");
  return layout;
}

auto part_sums(const Codes& codes, const Codes& codes_of_rows, const LayoutOfParts& given,
               const Ints& order, const Wholes2& items, const Wholes2& cells, bool with_squares) {
  const std::size_t p = codes.shape(0), n = codes.shape(1);
  const CodesBothWays all = both_ways(codes, codes_of_rows);
  const PartLayout layout = layout_of(given, p);
  const auto rows = sized("order", order, n);
  const auto of_rows = sized("items", items, n, 2);
  expect_cells(cells, n);
  expect_rows(view(cells), rows, n);
  const auto loop = [&](auto sums, auto squares) {
    certree::part_sums(all, layout, rows, of_rows, view(cells), sums, squares);
  };
  return run(loop, SumsTable(cells.shape(0), layout.size()),
             Column<std::int64_t>(with_squares ? cells.shape(0) : 0));
}

auto part_divide(const Codes& codes, const InOut<std::int32_t, 1>& order, const Wholes2& cells,
                 const Ints& cell, const Ints& feature, const Codes& goes_left) {
  const std::size_t n = codes.shape(1), n_cuts = cell.size();
  const auto rows = sized("order", order, n);
  expect_codes("feature", sized("feature", feature, n_cuts),
               static_cast<std::int64_t>(codes.shape(0)));
  expect_cells(cells, n);
  expect_rows(view(cells), rows, n);
  for (std::size_t d = 0; d < n_cuts; ++d)
    expect_codes("cell", view(cell).subspan(d, 1),
                 static_cast<std::int64_t>(cells.shape(0) + 2 * d));
  const PartCuts cuts{view(cell), view(feature), sized("goes_left", goes_left, n_cuts, 256)};
  for (const std::uint8_t one : cuts.goes_left.values())
    if (one > 1) throw std::invalid_argument("goes_left must hold 0 and 1");
  const auto loop = [&](Table<std::int64_t> below) {
    certree::part_divide(view(codes), view(cells), cuts, rows, below);
  };
  return run(loop, Rows<std::int64_t>(checked_size(n_cuts, 2u), 2));
}

// Numbers of rows of both sides, growing ones first, and their largest gradients (2 * n_outputs,
// 2).
using SidesOfAll = std::tuple<std::int64_t, std::int64_t, Doubles2>;

RoundSums sums_of(const SidesOfAll& sides, std::int64_t n_outputs, Table<std::int64_t> whole) {
  const auto& [n_growing, n_others, largest] = sides;
  const auto K = static_cast<std::size_t>(n_outputs);
  const auto both = sized("largest", largest, 2 * K, 2);
  return {{n_growing, {both.data, n_outputs, 2}, {whole.data, n_outputs, whole.width}},
          {n_others,
           {both.row(n_outputs), n_outputs, 2},
           {whole.row(n_outputs), n_outputs, whole.width}}};
}

auto part_leaves(const RowsOfPart& given, const Ints& order, std::int64_t n_growing,
                 const Wholes2& cells, const Ints& node, std::int64_t n_nodes,
                 const SidesOfAll& sides, const InOut<std::int32_t, 1>& leaf) {
  const auto known = rows_of(given);
  const PartRows& rows = known->rows;
  const std::size_t n = rows.keys.size();
  if (n_nodes < 1 || n_nodes > 1 << 30 || n_growing < 0 || std::cmp_greater(n_growing, n))
    throw std::invalid_argument("a tree has nodes, and some rows grow it");
  expect_cells(cells, n);
  expect_rows(view(cells), sized("order", order, n), n);
  expect_codes("node", sized("node", node, cells.shape(0)), n_nodes);
  const PartLeaves leaves{view(order), n_growing, view(cells), view(node)};
  const auto to_leaf = sized("leaf", leaf, n);
  const auto loop = [&](Table<std::int64_t> whole) {
    std::ranges::fill(whole.values(), 0);
    RoundSums sums = sums_of(sides, rows.scores.n_rows, whole);
    certree::part_leaves(rows, leaves, to_leaf, sums);
  };
  return run(loop, Rows<std::int64_t>(2 * rows.scores.n_rows, checked_size(n_nodes, 2)));
}

// -- what the sums of all parts decide

auto sums_by_bin(const Wholes2& told, const std::optional<Wholes>& columns, const Wholes2& above,
                 const In<std::int32_t, 2>& rows, std::int64_t n_cells, std::int64_t width) {
  const std::size_t c = told.shape(0), k = told.shape(1);
  if (n_cells < 0 || n_cells > 2 * static_cast<std::int64_t>(c) || width < 0)
    throw std::invalid_argument("each of the cells that are cut has at most two children");
  const ToldSums given{view(told),
                       columns ? sized("columns", *columns, k) : std::span<const std::int64_t>(),
                       sized("above", above, above.shape(0), static_cast<std::size_t>(width)),
                       sized("rows", rows, c, 3)};
  if (!columns && std::cmp_not_equal(k, width))
    throw std::invalid_argument("told must be by all bins, or columns say by which");
  for (const std::int64_t column : given.columns)
    if (column < 0 || column >= width)
      throw std::invalid_argument("columns must lie in 0 .. " + std::to_string(width - 1));
  std::vector<std::uint8_t> is_told(static_cast<std::size_t>(n_cells));
  for (std::int64_t i = 0; i < given.rows.n_rows; ++i) {
    const std::int32_t* const row = given.rows.row(i);
    for (const std::int32_t to : {row[1], row[2]}) {
      if (to < -1 || to >= n_cells)
        throw std::invalid_argument("rows must be those of cells, or -1");
      if (to >= 0) is_told[static_cast<std::size_t>(to)] += 1;
    }
    if (row[2] >= 0 && (row[0] < 0 || row[0] >= given.above.n_rows))
      throw std::invalid_argument("rows must be those of the cells that are cut");
  }
  if (std::ranges::any_of(is_told, [](std::uint8_t n) { return n != 1; }))
    throw std::invalid_argument("each row of the sums must be that of one child");
  const auto loop = [&](Table<std::int64_t> sums) { certree::sums_by_bin(given, sums); };
  return run(loop, SumsTable(n_cells, width));
}

// l2, min_hessian, largest gradient and Hessian, number of rows, and their sums.
using GivenSumsOfAll = std::tuple<double, double, double, double, std::int64_t, Wholes>;
// Keys of cells and their cuts; keys of those that wait, sums and squares.
using Known = std::tuple<Keys, Codes, Keys, Wholes2, Wholes>;

auto grow_gradients_by_sums(const Kept& kept, const Ints& features, const Limits& limits,
                            const MonotonicSigns& monotonic, const Groups& groups,
                            const GivenSumsOfAll& given, const Known& known) {
  const std::size_t p = std::get<0>(kept).size();
  const KeptBins bins = kept_bins(kept, p);
  const BinnedGrowth growth = growth_of(limits, monotonic, groups, p, 1);
  expect_codes("features", view(features), static_cast<std::int64_t>(p));
  const auto& [l2, min_hessian, gradient, hessian, n_rows, total] = given;
  const auto& [decided, cuts, keys, sums, squares] = known;
  const GivenGradients of_all{l2, min_hessian, gradient, hessian, n_rows, sized("total", total, 3)};
  const KnownNodes cells{view(decided), sized("cuts", cuts, decided.size(), kSplitBytes),
                         view(keys), sized("sums", sums, keys.size(), sums.shape(1)),
                         sized("squares", squares, keys.size())};
  GivenTree made;
  run([&] { made = certree::grow_gradients_by_sums(bins, view(features), growth, of_all, cells); });
  TreeColumns columns;
  append(made.tree.columns, columns);
  finish_columns(columns);
  const std::size_t m = columns.left.size(), n_cuts = made.feature.size();
  return std::tuple(handed_over(std::move(columns), {0}), owned(std::move(made.tree.sums), m, 3),
                    owned(std::move(made.splits), keys.size(), kSplitBytes),
                    owned(std::move(made.keys), n_cuts, 3), owned(std::move(made.feature)),
                    owned(std::move(made.goes_left), n_cuts, 256),
                    owned(std::move(made.n_rows), n_cuts, 2),
                    owned(std::move(made.wanted), n_cuts, 2));
}

auto round_steps_by_sums(const Ints& left, const SidesOfAll& sides, const Wholes2& whole,
                         double shrinkage, const VotersGiven& of_goals, double others,
                         double curvature, const Doubles& stop, const Ints& feature,
                         const MonotonicSigns& slope) {
  const Shape tree = shape(left);
  const std::size_t n_outputs = whole.shape(0) / 2;
  if (n_outputs == 0) throw std::invalid_argument("whole must hold sums of some outputs");
  const auto given = sized("whole", whole, 2 * n_outputs, 2 * tree.size());
  const std::vector<Voters> voters = voters_of(of_goals, static_cast<std::int64_t>(n_outputs));
  const RoundVote vote =
      vote_of(shrinkage, voters, others, curvature, stop, feature, slope, tree.size());
  std::vector<std::int64_t> sums(given.values().begin(), given.values().end());
  const RoundSums of_all = sums_of(sides, static_cast<std::int64_t>(n_outputs),
                                   {sums.data(), given.n_rows, given.width});
  const auto loop = [&](auto step, auto deviation, auto weight) {
    return certree::round_steps(tree, of_all, vote, step, deviation, weight);
  };
  return run(loop, Rows<double>(tree.size(), n_outputs), Rows<double>(tree.size(), n_outputs),
             Rows<double>(voters.size(), tree.size()));
}

}  // namespace

void bind_parts(nb::module_& core) {
  core.def("distinct_values", &distinct_values, "column"_array,
           "The distinct values of a part, ascending; None where there are more than 255.");
  core.def("choose_bin_edges", &bin_edges, "values"_array, "most"_a, "fine_ends"_a,
           "Edges of so many bins at most by values of sampled rows.");
  core.def("encode_numbers", &encode_numbers, "column"_array, "edges"_array,
           "Codes of a part, and the smallest and largest value in each bin.");
  core.def("bin_categories", &bin_levels, "category_codes"_array, "n_rows"_array,
           "The bin of each of ascending category_codes by how many rows have it, and the number "
           "of bins.");
  core.def("join_bins", &join_bins, "kept"_a, "features"_array, "n_edges"_a, "key"_a,
           "order"_array_or_none,
           "What codes of features become in coarser bins, and the numbers and ends of these.");
  core.def("draw_round", &draw_round, "seed"_a, "number"_a, "n_outputs"_a, "n_features"_array,
           "n_thresholds"_array, "p"_a, "order"_array_or_none,
           "Odd numbers, factors, features, number of edges and their key of a round.");
  core.def("fixed_unit", &fixed_unit, "largest"_a, "n"_a,
           "Exponent of the power of two that n numbers are whole multiples of.");
  core.def("scale_terms", &scale_terms, "loss"_a, "y"_array, "scores"_array,
           "The numbers of rows of which the scale of a loss is the mean, or a quantile.");
  core.def("scaled_losses", &scaled_losses, "loss"_a, "y"_array, "scores"_array,
           "Loss of each row, in the scale of all of them.");
  core.def("dispersion_of_sums", &dispersion_of_sums, "loss"_a, "sums"_array, "weight"_a,
           "What gradients are divided by, by the sums of its terms and of weights.");
  core.def("part_largest", &part_largest, "rows"_a, "draws"_a,
           "(largest numbers, number of growing rows, least key) of a part.");
  core.def("part_items", &part_items, "rows"_a, "draws"_a, "largest"_a, "order"_array,
           "items"_array,
           "Writes order and items of a part; (number of growing rows, their sums, terms of "
           "dispersion).");
  core.def("part_add_steps", &part_add_steps, "before"_array, "leaf"_array, "steps"_array,
           "scores"_array, "Writes scores of rows: those before and the steps of their leaves.");
  core.def("part_sums", &part_sums, "codes"_array, "codes_of_rows"_array, "layout"_a, "order"_array,
           "items"_array, "cells"_array, "with_squares"_a,
           "Sums of cells of a part by feature and place, and their squares.");
  core.def("part_divide", &part_divide, "codes"_array, "order"_array, "cells"_array, "cell"_array,
           "feature"_array, "goes_left"_array,
           "Moves rows in their order as cells are cut one after the other; the cells below.");
  core.def("part_leaves", &part_leaves, "rows"_a, "order"_array, "n_growing"_a, "cells"_array,
           "node"_array, "n_nodes"_a, "sides"_a, "leaf"_array,
           "Writes the leaf of each row; sums of gradients by leaf of both sides of a part.");
  core.def("add_sums", &add_sums, "one"_array, "other"_array,
           "Sums of cells of two parts together.");
  core.def("sums_by_bin", &sums_by_bin, "told"_array, "columns"_array_or_none, "above"_array,
           "rows"_array, "n_cells"_a, "width"_a,
           "Sums by bin of children of cells, by what is told of the smaller ones by place.");
  core.def("grow_gradients_by_sums", &grow_gradients_by_sums, "kept"_a, "features"_array,
           "limits"_a, "monotonic"_array_or_none, "groups"_array_or_none, "given"_a, "known"_a,
           "A tree as far as sums are known; see GivenTree.");
  core.def("round_steps_by_sums", &round_steps_by_sums, "left"_array, "sides"_a, "whole"_array,
           "shrinkage"_a, "voters"_a, "others"_a, "curvature"_a, "stop"_array, "feature"_array,
           "slope"_array_or_none,
           "(steps, weight, log evidence) of a tree whose rows are added up by leaf.");
}

}  // namespace certree::bindings
