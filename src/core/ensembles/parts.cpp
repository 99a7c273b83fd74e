// Slopes are made anew whenever they are asked for: they would be more to keep than all else.
#include "ensembles/parts.hpp"

#include "ensembles/draws_of_round.hpp"
#include "grow/add_up.hpp"
#include "grow/gradients.hpp"

namespace certree {
namespace {

// Gradients and Hessians of a part, times the weights of its rows.
class PartSlopes {
 public:
  explicit PartSlopes(const PartRows& rows)
      : rows_(rows),
        n_outputs_(rows.scores.n_rows),
        slopes_(make_buffer<double>(2 * n_outputs_, rows.y.size())) {
    slopes_of(rows.loss, rows.y, rows.scores, gradient(), hessian());
    weigh_slopes(rows.weight, all());
  }

  // room: memory for them, which has to last.
  std::vector<std::span<const double>> dispersion_terms(Buffer<double>& room) const {
    return certree::dispersion_terms(rows_.loss, rows_.y, rows_.scores, rows_.weight, gradient(),
                                     hessian(), room);
  }

  Table<double> gradient() const { return {slopes_.get(), n_outputs_, width()}; }
  Table<double> hessian() const { return {all().row(n_outputs_), n_outputs_, width()}; }

  // What a tree grows on. mixed: memory for it, which has to last.
  Derivatives response(const PartDraws& draws, Buffer<double>& mixed) const {
    const std::size_t n = rows_.y.size();
    std::span<const double> g(slopes_.get(), n), h(slopes_.get() + n, n);
    if (n_outputs_ > 1) {
      mixed = make_buffer<double>(2, n);
      const Table<double> both{mixed.get(), 2, width()};
      fill(both.values(), 0.0);
      add_mixed(gradient(), hessian(), draws.factors, both);
      g = {mixed.get(), n};
      h = {mixed.get() + n, n};
    }
    return response_of_round(g, h, rows_.keys, draws.other_odd, draws.subsample >= 1.0);
  }

 private:
  std::int64_t width() const { return std::ssize(rows_.y); }
  Table<double> all() const { return {slopes_.get(), 2 * n_outputs_, width()}; }

  const PartRows& rows_;
  std::int64_t n_outputs_;
  Buffer<double> slopes_;
};

// Numbers of the rows that grow, then of the others. Returns how many grow.
std::size_t deal(const PartRows& rows, const PartDraws& draws, std::span<std::int32_t> order) {
  const RoundLot lot(draws.odd, draws.subsample);
  const std::size_t n = rows.keys.size();
  const auto others = make_buffer<std::int32_t>(n + 1), growing = make_buffer<std::int32_t>(n + 1);
  const std::size_t n_growing = part_rows(
      n,
      [&](std::size_t i) {
        return draws.least_grows ? lot.mixed(rows.keys[i]) == draws.least : lot.grows(rows.keys[i]);
      },
      growing.get(), others.get());
  std::copy_n(growing.get(), n_growing, order.begin());
  std::copy_n(others.get(), n - n_growing, order.begin() + static_cast<std::ptrdiff_t>(n_growing));
  return n_growing;
}

}  // namespace

PartLargest part_largest(const PartRows& rows, const PartDraws& draws) {
  const std::size_t n = rows.y.size();
  const std::int64_t n_outputs = rows.scores.n_rows;
  PartLargest made{std::vector<double>(static_cast<std::size_t>(4 + 4 * n_outputs)), 0,
                   std::numeric_limits<std::uint64_t>::max()};
  if (n == 0) return made;
  std::vector<std::int32_t> order(n);
  const std::size_t n_growing = deal(rows, draws, order);
  made.n_growing = static_cast<std::int64_t>(n_growing);
  const RoundLot lot(draws.odd, draws.subsample);
  for (const std::size_t i : turns(n)) made.least = std::min(made.least, lot.mixed(rows.keys[i]));
  const PartSlopes slopes(rows);
  Buffer<double> mixed;
  const std::span<const std::int32_t> growing = std::span(order).first(n_growing);
  const std::span<const std::int32_t> others = std::span(order).subspan(n_growing);
  const auto of_tree = Gradients::largest(slopes.response(draws, mixed), growing);
  auto to = made.largest.begin();
  *to++ = of_tree.gradient;
  *to++ = of_tree.hessian;
  Buffer<double> room;
  for (std::size_t i = 0; const auto& terms : slopes.dispersion_terms(room))
    to[static_cast<std::ptrdiff_t>(i++)] = largest_number(terms);
  to += 2;
  for (const auto& side : {growing, others})
    for (std::int64_t k = 0; k < n_outputs; ++k)
      for (const auto& table : {slopes.gradient(), slopes.hessian()})
        *to++ = largest_slope({table.row(k), n}, side);
  return made;
}

PartItems part_items(const PartRows& rows, const PartDraws& draws, const LargestOfAll& largest,
                     std::span<std::int32_t> order, Table<std::int64_t> items) {
  PartItems made{};
  if (rows.y.empty()) return made;
  const std::size_t n_growing = deal(rows, draws, order);
  made.n_growing = static_cast<std::int64_t>(n_growing);
  const std::span<const std::int32_t> growing = order.first(n_growing);
  const PartSlopes slopes(rows);
  Buffer<double> mixed;
  const Gradients target(slopes.response(draws, mixed), {largest.gradient, largest.hessian},
                         largest.n_growing, BinnedGrowth{});
  std::ranges::fill(items.values(), 0);
  static_assert(sizeof(GradientItem) == 2 * sizeof(std::int64_t));
  auto* const as_items = reinterpret_cast<GradientItem*>(items.data);
  target.itemise(growing, as_items);
  CellSums totals;
  target.total(growing, as_items, totals);
  totals.end_cell();
  std::ranges::copy(totals.of(0).sum, made.total.begin());
  made.squares = Gradients::squares(growing, as_items);
  Buffer<double> room;
  for (std::size_t i = 0; const auto& terms : slopes.dispersion_terms(room)) {
    const FixedPoint fixed(largest.of_dispersion[i], largest.n);
    for (const double term : terms) made.of_dispersion[i] += fixed.whole(term);
    ++i;
  }
  return made;
}

void part_sums(const BinnedTable& table, std::span<const std::int32_t> features,
               std::span<const std::int32_t> order, Table<const std::int64_t> items,
               PartCells cells, Table<std::int64_t> sums, std::span<std::int64_t> squares) {
  const SumsLayout layout(features, table.n_bins, Gradients::kLanes);
  const auto* const as_items = reinterpret_cast<const GradientItem*>(items.data);
  std::vector<GradientItem> gathered;
  for (std::int64_t c = 0; c < cells.n_rows; ++c) {
    const std::int64_t* const range = cells.row(c);
    const auto rows = order.subspan(static_cast<std::size_t>(range[0]),
                                    static_cast<std::size_t>(range[1] - range[0]));
    std::ranges::fill(std::span(sums.row(c), layout.size()), 0);
    if (!squares.empty()) squares[static_cast<std::size_t>(c)] = Gradients::squares(rows, as_items);
    if (rows.empty()) continue;
    gathered.resize(rows.size());
    auto to = gathered.begin();
    for (const auto some : stretches(rows))
      for (const std::int32_t row : some) *to++ = as_items[row];
    add_up(Part<Gradients>{rows, gathered.data()}, table.codes, features, layout, sums.row(c));
  }
}

void part_divide(Table<const std::uint8_t> codes, PartCells cells, const PartCuts& cuts,
                 std::span<std::int32_t> order, Table<std::int64_t> below) {
  const auto room = make_buffer<std::int32_t>(order.size() + 1);
  for (const std::size_t d : turns(cuts.cell.size())) {
    const std::int64_t cell = cuts.cell[d];
    const std::int64_t* const range =
        cell < cells.n_rows ? cells.row(cell) : below.row(cell - cells.n_rows);
    const auto begin = range[0], end = range[1];
    GoesLeft goes_left;
    std::copy_n(cuts.goes_left.row(d), goes_left.size(), goes_left.begin());
    const std::int64_t n_left =
        send(order.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
             CodesOfFeature{codes.row(cuts.feature[d])}, goes_left, room.get());
    std::int64_t* const to = below.row(2 * d);
    to[0] = begin;
    to[1] = to[2] = begin + n_left;
    to[3] = end;
  }
}

void part_leaves(const PartRows& rows, const PartLeaves& leaves, std::span<std::int32_t> leaf,
                 RoundSums& sums) {
  fill(leaf, kLeaf);
  for (std::int64_t c = 0; c < leaves.cells.n_rows; ++c) {
    const std::int64_t* const range = leaves.cells.row(c);
    const std::int32_t v = leaves.node[static_cast<std::size_t>(c)];
    for (const auto part :
         stretches(leaves.order.data() + range[0], leaves.order.data() + range[1]))
      for (const std::int32_t i : part) leaf[static_cast<std::size_t>(i)] = v;
  }
  if (rows.y.empty()) return;
  const PartSlopes slopes(rows);
  const auto first = static_cast<std::size_t>(leaves.n_growing);
  add_up_leaves({leaf, leaves.order.first(first), leaves.order.subspan(first), slopes.gradient(),
                 slopes.hessian()},
                sums);
}

}  // namespace certree
