// What many posteriors on one tree say of judging rows: eight of them in each sweep over its nodes.
//
// Held-out rows see a part of the tree only, and the loss asks for a few classes there: the list of
// those votes is made once, and every sweep runs along it.
#include "tune.hpp"

#include "parallel.hpp"
#include "weights/upward_pass.hpp"

namespace certree {
namespace {

constexpr std::size_t kLanes = 8;

// A class that the loss asks for at a node.
struct Asked {
  std::int32_t above;  // its place at the parent; 0 if it was not asked for there
  double value;        // what the node gives to it
  double rows;         // judging rows of it, or, for the error, of the other classes
};

// The judging numbers at a node.
struct Held {
  double mean;
  double squares;  // sum of squared distances from it
};

// A node above judging rows.
struct Seen {
  std::int32_t node;
  std::int32_t parent;  // place of the parent in the list
  std::size_t end;      // of its votes; they begin where those of the node before end
  bool is_leaf;
};

// The share of a class is kept from 0, whose log is infinite.
constexpr double kSmallest = std::numeric_limits<double>::epsilon();

CERTREE_INLINE double at_least_smallest(double share) {
  return share > kSmallest ? share : kSmallest;
}

// Log loss asks for the classes of the rows in a cell, error for all that have votes there; squared
// loss asks for the one mean.
class Hearing {
 public:
  Hearing(Shape tree, const Values& values, const Counts& judging, Loss kind)
      : kind_(kind), asked_{{0, 0.0, 0.0}} {
    const std::size_t m = tree.size();
    std::vector<std::int32_t> parent(m, kNone);  // in seen_
    std::vector<std::int32_t> place(static_cast<std::size_t>(values.n_classes));
    NodeValues value(values);
    seen_.reserve(m);
    asked_.reserve(2 * m);
    class_.reserve(2 * m);
    for (const std::size_t v : indices(m, judging.width())) {
      const double all = kind == Loss::squared ? judging.of(v, 0) : judging.total(v);
      if (all <= 0.0) continue;
      const std::int32_t above = parent[v];
      each_asked(above, [&](std::size_t k, std::int32_t a) { place[k] = a; });
      value.see(v);
      ask(v, place, value, judging, all);
      each_asked(above, [&](std::size_t k, std::int32_t) { place[k] = 0; });
      const auto here = static_cast<std::int32_t>(seen_.size());
      seen_.push_back({static_cast<std::int32_t>(v), above, asked_.size(), tree.is_leaf(v)});
      if (!tree.is_leaf(v)) parent[tree.left(v)] = parent[tree.left(v) + 1] = here;
    }
  }

  std::size_t n_seen() const { return seen_.size(); }
  std::size_t n_asked() const { return asked_.size(); }

  // visit(first, end) gets the places of the votes of every leaf, in the order of the leaves.
  template <class Visit>
  CERTREE_INLINE void each_leaf(const Visit& visit) const {
    std::size_t first = 1;
    for (const std::size_t s : indices(seen_.size(), steps())) {
      const Seen& seen = seen_[s];
      if (seen.is_leaf) visit(first, seen.end);
      first = seen.end;
    }
  }

  // score: (n_asked, kLanes) path sums of the votes, for the odds (m, kLanes) of an up pass.
  // reach: (n_seen + 1, kLanes) scratch.
  CERTREE_INLINE void vote(const double* odds, double* reach, double* score) const {
    std::fill_n(reach, kLanes, 1.0);
    std::fill_n(score, kLanes, 0.0);
    std::size_t first = 1;
    for (const std::size_t s : indices(seen_.size(), steps())) {
      const Seen& seen = seen_[s];
      const double* reached = reach + static_cast<std::size_t>(seen.parent + 1) * kLanes;
      const double* odd = odds + static_cast<std::size_t>(seen.node) * kLanes;
      double* handed_on = reach + (s + 1) * kLanes;
      double weight[kLanes];
      for (std::size_t i = 0; i < kLanes; ++i) weight[i] = reached[i];
      if (!seen.is_leaf) {
        for (std::size_t i = 0; i < kLanes; ++i) {
          const Odds decision(odd[i]);
          handed_on[i] = weight[i] * decision.split;
          weight[i] *= decision.stop;
        }
      }
      for (std::size_t a = first; a < seen.end; ++a) {
        const double* above = score + static_cast<std::size_t>(asked_[a].above) * kLanes;
        for (std::size_t i = 0; i < kLanes; ++i)
          score[a * kLanes + i] = above[i] + weight[i] * asked_[a].value;
      }
      first = seen.end;
    }
  }

  // loss: (kLanes,) summed over the judging rows.
  CERTREE_INLINE void judge(const double* score, double* loss) const {
    std::fill_n(loss, kLanes, 0.0);
    each_leaf([&](std::size_t first, std::size_t end) {
      if (kind_ == Loss::log_loss)
        add_log_loss(first, end, score, loss);
      else if (kind_ == Loss::error)
        add_errors(first, end, score, loss);
      else
        add_squares(first, score, loss);
    });
  }

  double rows(std::size_t a) const { return asked_[a].rows; }

  // What the vote should be.
  double truth(std::size_t a) const { return kind_ == Loss::squared ? held_[a - 1].mean : 1.0; }

 private:
  static constexpr std::int32_t kNone = -1;

  // visit(class, place) sees the classes that were asked for at a node seen before, if at any.
  template <class Visit>
  void each_asked(std::int32_t s, const Visit& visit) const {
    if (s == kNone) return;
    for (std::size_t a = begin(s); a < seen_[static_cast<std::size_t>(s)].end; ++a)
      visit(static_cast<std::size_t>(class_[a - 1]), static_cast<std::int32_t>(a));
  }

  // Adds the classes that are asked for at a node, of whose judging rows there are `all`.
  // place: (n_classes,) of each class at the parent, 0 if it was not asked for there.
  void ask(std::size_t v, const std::vector<std::int32_t>& place, NodeValues& value,
           const Counts& judging, double all) {
    const auto n_classes = static_cast<std::int64_t>(place.size());
    const auto add = [&](std::int64_t k, double rows, bool if_zero) {
      const std::int32_t at = place[static_cast<std::size_t>(k)];
      const double uniform = 1.0 / static_cast<double>(n_classes);
      const double from_above = v == 0 ? uniform : asked_[static_cast<std::size_t>(at)].value;
      const double own = value(k, from_above);
      if (!if_zero && at == 0 && own <= 0.0) return;
      asked_.push_back({at, own, rows});
      class_.push_back(static_cast<std::int32_t>(k));
    };
    if (kind_ == Loss::squared) {
      add(0, all, true);
      held_.push_back({judging.of(v, 1), judging.of(v, 2)});
    } else if (kind_ == Loss::error) {
      for (std::int64_t k = 0; k < n_classes; ++k) add(k, all - judging.of(v, k), false);
    } else {
      judging.each(v, [&](std::int64_t k, double rows) {
        if (rows > 0.0) add(k, rows, true);
      });
    }
  }

  // About so many steps a node takes.
  std::size_t steps() const {
    return kLanes * (1 + asked_.size() / std::max<std::size_t>(seen_.size(), 1));
  }

  std::size_t begin(std::int32_t s) const {
    return s == 0 ? 1 : seen_[static_cast<std::size_t>(s - 1)].end;
  }

  // Shares of a vote sum to 1, so they are not divided by their sum.
  CERTREE_INLINE void add_log_loss(std::size_t first, std::size_t end, const double* score,
                                   double* loss) const {
    for (std::size_t a = first; a < end; ++a) {
      const double rows = asked_[a].rows;
      for (std::size_t i = 0; i < kLanes; ++i)
        loss[i] -= rows * log_positive(at_least_smallest(score[a * kLanes + i]));
    }
  }

  // The class with the largest score, ties to the lowest, is right for its own rows only.
  CERTREE_INLINE void add_errors(std::size_t first, std::size_t end, const double* score,
                                 double* loss) const {
    double largest[kLanes] = {}, wrong[kLanes] = {};
    for (std::size_t a = first; a < end; ++a) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        const bool larger = score[a * kLanes + i] > largest[i];
        largest[i] = larger ? score[a * kLanes + i] : largest[i];
        wrong[i] = larger ? asked_[a].rows : wrong[i];
      }
    }
    for (std::size_t i = 0; i < kLanes; ++i) loss[i] += wrong[i];
  }

  CERTREE_INLINE void add_squares(std::size_t a, const double* score, double* loss) const {
    const Held& held = held_[a - 1];
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double distance = score[a * kLanes + i] - held.mean;
      loss[i] += asked_[a].rows * (distance * distance) + held.squares;
    }
  }

  Loss kind_;
  std::vector<Asked> asked_;  // the first one stands for no vote
  std::vector<std::int32_t> class_;
  std::vector<Held> held_;  // of squared loss
  std::vector<Seen> seen_;
};

// The memory of one thread.
struct Scratch {
  UpPass<kLanes> pass;
  Buffer<double> odds, reach, score;
  std::vector<double> theta;  // (n_terms, kLanes)
  Scratch(const Terms& terms, const Hearing& hearing)
      : pass(terms),
        odds(make_buffer<double>(terms.tree.size(), kLanes)),
        reach(make_buffer<double>(hearing.n_seen() + 1, kLanes)),
        score(make_buffer<double>(hearing.n_asked(), kLanes)),
        theta(terms.n_terms() * kLanes) {}
};

CERTREE_SIMD_CLONES void vote(Scratch& scratch, const Hearing& hearing, Rule rule) {
  scratch.pass.run(rule, scratch.theta.data(), scratch.odds.get(), nullptr);
  hearing.vote(scratch.odds.get(), scratch.reach.get(), scratch.score.get());
}
const ClonePointer<decltype(vote)> vote_here = vote;

CERTREE_SIMD_CLONES void judge(const Scratch& scratch, const Hearing& hearing, double* loss) {
  hearing.judge(scratch.score.get(), loss);
}
const ClonePointer<decltype(judge)> judge_here = judge;

// Lets kLanes posteriors vote at a time; visit(scratch, first, n) sees the scores of posteriors
// first, ..., first + n - 1. It is called from several threads.
template <class Visit>
void each_group(const Terms& terms, const Grid& grid, const Hearing& hearing, int n_threads,
                const Visit& visit) {
  constexpr auto width = static_cast<std::int64_t>(kLanes);
  const std::int64_t n_groups = (grid.theta.n_rows + width - 1) / width;
  const std::int64_t parts = std::clamp<std::int64_t>(n_threads, 1, n_groups);
  parallel_for(parts, n_threads, [&](std::int64_t part) {
    Scratch scratch(terms, hearing);
    for (std::int64_t group = part; group < n_groups; group += parts) {
      const std::int64_t first = group * width, filled = std::min(width, grid.theta.n_rows - first);
      for (std::int64_t i = 0; i < width; ++i) {
        const double* row = grid.theta.row(first + std::min(i, filled - 1));
        for (std::size_t f = 0; f < terms.n_terms(); ++f)
          scratch.theta[f * kLanes + static_cast<std::size_t>(i)] = row[f];
      }
      vote_here(scratch, hearing, grid.rule);
      visit(scratch, static_cast<std::size_t>(first), static_cast<std::size_t>(filled));
    }
  });
}

}  // namespace

void score_grid(const Terms& terms, const Grid& grid, const Values& values, const Counts& judging,
                Loss kind, int n_threads, std::span<double> loss) {
  if (loss.empty()) return;
  const Hearing hearing(terms.tree, values, judging, kind);
  each_group(terms, grid, hearing, n_threads,
             [&](const Scratch& scratch, std::size_t first, std::size_t n) {
               double losses[kLanes];
               judge_here(scratch, hearing, losses);
               std::copy_n(losses, n, loss.data() + first);
             });
}

JudgedVotes judged_votes(const Terms& terms, const Grid& grid, const Values& values,
                         const Counts& judging, Loss kind, int n_threads) {
  const Hearing hearing(terms.tree, values, judging, kind);
  JudgedVotes judged;
  hearing.each_leaf([&](std::size_t first, std::size_t end) {
    for (std::size_t a = first; a < end; ++a) {
      judged.rows.push_back(hearing.rows(a));
      judged.truth.push_back(hearing.truth(a));
    }
  });
  const auto n_grid = static_cast<std::size_t>(grid.theta.n_rows);
  judged.vote.reserve(checked_size(judged.rows.size(), n_grid));
  for ([[maybe_unused]] const std::size_t row : indices(judged.rows.size(), n_grid))
    judged.vote.resize(judged.vote.size() + n_grid);
  const double least = kind == Loss::squared ? -std::numeric_limits<double>::infinity() : kSmallest;
  each_group(terms, grid, hearing, n_threads,
             [&](const Scratch& scratch, std::size_t from, std::size_t n) {
               double* to = judged.vote.data() + from;
               hearing.each_leaf([&](std::size_t first, std::size_t end) {
                 for (std::size_t a = first; a < end; ++a, to += n_grid)
                   for (std::size_t i = 0; i < n; ++i)
                     to[i] = std::max(scratch.score[a * kLanes + i], least);
               });
             });
  return judged;
}

double mix(std::span<const double> rows, Table<const double> share, std::int64_t n_steps,
           std::span<double> proportion) {
  const std::size_t n = proportion.size();
  std::ranges::fill(proportion, 1.0 / static_cast<double>(n));
  std::vector<double> credit(n);
  const auto mixed = [&](std::size_t a) {
    return std::inner_product(proportion.begin(), proportion.end(), share.row(a), 0.0);
  };
  const double total = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (std::int64_t step = 0; step < n_steps; ++step) {
    std::ranges::fill(credit, 0.0);
    for (const std::size_t a : indices(rows.size(), 2 * n)) {
      const double scale = rows[a] / mixed(a);
      for (std::size_t i = 0; i < n; ++i) credit[i] += scale * share.row(a)[i];
    }
    for (std::size_t i = 0; i < n; ++i) proportion[i] *= credit[i] / total;
  }
  double loss = 0.0;
  for (const std::size_t a : indices(rows.size(), n)) loss -= rows[a] * std::log(mixed(a));
  return loss;
}

}  // namespace certree
