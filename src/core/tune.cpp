// Validation losses of many posteriors on one tree, eight in each pass over its nodes.
//
// Validation rows reach only some of the nodes, and the loss reads the votes of only some classes
// there. These votes are listed once, and every pass follows the list.
#include "tune.hpp"

#include "parallel.hpp"
#include "weights/upward_pass.hpp"

namespace certree {
namespace {

constexpr std::size_t kLanes = 8;

// A listed vote: that of one node for one class.
struct ListedVote {
  std::int32_t parent_vote;  // number of the parent's vote for the class; 0 if it is not listed
  double vote;
  double rows;  // validation weight of the class at the node; for VoteLoss::error of all others
};

// Mean of the validation targets at a node, and sum of squared distances from it.
struct NodeMoments {
  double mean;
  double squares;
};

// A listed node: one that validation rows reach.
struct ListedNode {
  std::int32_t node;
  std::int32_t parent;  // number of the parent among the listed nodes
  std::size_t end;      // end of its votes, which begin at the end of the previous node's
  bool is_leaf;
};

// Probabilities are at least this, as the log loss of 0 is infinite.
constexpr double kSmallest = std::numeric_limits<double>::epsilon();

CERTREE_INLINE double at_least_smallest(double probability) {
  return probability > kSmallest ? probability : kSmallest;
}

// The votes that a loss reads: for the log loss those for the classes of the validation rows at a
// node, for the error those for all classes with a positive vote at the node or above it, and for
// the squared loss that for the mean.
class VoteList {
 public:
  VoteList(Shape tree, const Votes& votes, const Counts& validation, VoteLoss kind)
      : kind_(kind), votes_{{0, 0.0, 0.0}} {
    const std::size_t m = tree.size();
    std::vector<std::int32_t> parent(m, kNone);  // number of the parent in nodes_
    std::vector<std::int32_t> parent_vote(static_cast<std::size_t>(votes.n_classes));
    VoteReader reader(votes);
    nodes_.reserve(m);
    votes_.reserve(2 * m);
    class_.reserve(2 * m);
    for (const std::size_t v : indices(m, validation.classes_per_node())) {
      const double total =
          kind == VoteLoss::squared ? validation.weight_of(v, 0) : validation.total(v);
      if (total <= 0.0) continue;
      const std::int32_t above = parent[v];
      for_each_listed_class(above, [&](std::size_t k, std::int32_t a) { parent_vote[k] = a; });
      reader.move_to(v);
      list_votes(v, parent_vote, reader, validation, total);
      for_each_listed_class(above, [&](std::size_t k, std::int32_t) { parent_vote[k] = 0; });
      const auto number = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({static_cast<std::int32_t>(v), above, votes_.size(), tree.is_leaf(v)});
      if (!tree.is_leaf(v)) parent[tree.left(v)] = parent[tree.left(v) + 1] = number;
    }
  }

  std::size_t n_nodes() const { return nodes_.size(); }
  std::size_t n_votes() const { return votes_.size(); }

  // Calls visit(first, end) with the range of the votes of every listed leaf, in order.
  template <class Visit>
  CERTREE_INLINE void for_each_leaf(const Visit& visit) const {
    std::size_t first = 1;
    for (const std::size_t s : indices(nodes_.size(), steps_per_node())) {
      const ListedNode& listed = nodes_[s];
      if (listed.is_leaf) visit(first, listed.end);
      first = listed.end;
    }
  }

  // Computes scores (n_votes, kLanes), the weighted votes summed along paths from the root, from
  // the odds (m, kLanes) of an upward pass. reach: (n_nodes + 1, kLanes) scratch memory.
  CERTREE_INLINE void sum_votes(const double* odds, double* reach, double* score) const {
    std::fill_n(reach, kLanes, 1.0);
    std::fill_n(score, kLanes, 0.0);
    std::size_t first = 1;
    for (const std::size_t s : indices(nodes_.size(), steps_per_node())) {
      const ListedNode& listed = nodes_[s];
      const double* reached = reach + static_cast<std::size_t>(listed.parent + 1) * kLanes;
      const double* node_odds = odds + static_cast<std::size_t>(listed.node) * kLanes;
      double* children_reached = reach + (s + 1) * kLanes;
      double weight[kLanes];
      for (std::size_t i = 0; i < kLanes; ++i) weight[i] = reached[i];
      if (!listed.is_leaf) {
        for (std::size_t i = 0; i < kLanes; ++i) {
          const Decision decision(node_odds[i]);
          children_reached[i] = weight[i] * decision.split;
          weight[i] *= decision.stop;
        }
      }
      for (std::size_t a = first; a < listed.end; ++a) {
        const double* above = score + static_cast<std::size_t>(votes_[a].parent_vote) * kLanes;
        for (std::size_t i = 0; i < kLanes; ++i)
          score[a * kLanes + i] = above[i] + weight[i] * votes_[a].vote;
      }
      first = listed.end;
    }
  }

  // Computes the losses (kLanes,) of scores, summed over the validation rows.
  CERTREE_INLINE void compute_losses(const double* score, double* loss) const {
    std::fill_n(loss, kLanes, 0.0);
    for_each_leaf([&](std::size_t first, std::size_t end) {
      if (kind_ == VoteLoss::log_loss)
        add_log_loss(first, end, score, loss);
      else if (kind_ == VoteLoss::error)
        add_errors(first, end, score, loss);
      else
        add_squares(first, score, loss);
    });
  }

  double rows(std::size_t a) const { return votes_[a].rows; }

  // Returns what the score of a vote should be: 1, or the mean of the validation targets.
  double truth(std::size_t a) const {
    return kind_ == VoteLoss::squared ? moments_[a - 1].mean : 1.0;
  }

 private:
  static constexpr std::int32_t kNone = -1;

  // Calls visit(class, number of the vote) for the votes of a listed node; s may be kNone.
  template <class Visit>
  void for_each_listed_class(std::int32_t s, const Visit& visit) const {
    if (s == kNone) return;
    for (std::size_t a = begin(s); a < nodes_[static_cast<std::size_t>(s)].end; ++a)
      visit(static_cast<std::size_t>(class_[a - 1]), static_cast<std::int32_t>(a));
  }

  // Lists the votes of node v, which validation rows of weight `total` reach. parent_vote:
  // (n_classes,) number of the parent's vote for each class, 0 if it is not listed.
  void list_votes(std::size_t v, const std::vector<std::int32_t>& parent_vote, VoteReader& reader,
                  const Counts& validation, double total) {
    const auto n_classes = static_cast<std::int64_t>(parent_vote.size());
    const auto add = [&](std::int64_t k, double rows, bool also_if_zero) {
      const std::int32_t above = parent_vote[static_cast<std::size_t>(k)];
      const double uniform = 1.0 / static_cast<double>(n_classes);
      const double vote_above = v == 0 ? uniform : votes_[static_cast<std::size_t>(above)].vote;
      const double vote = reader.vote_for(k, vote_above);
      if (!also_if_zero && above == 0 && vote <= 0.0) return;
      votes_.push_back({above, vote, rows});
      class_.push_back(static_cast<std::int32_t>(k));
    };
    if (kind_ == VoteLoss::squared) {
      add(0, total, true);
      moments_.push_back({validation.weight_of(v, 1), validation.weight_of(v, 2)});
    } else if (kind_ == VoteLoss::error) {
      for (std::int64_t k = 0; k < n_classes; ++k)
        add(k, total - validation.weight_of(v, k), false);
    } else {
      validation.for_each_class(v, [&](std::int64_t k, double rows) {
        if (rows > 0.0) add(k, rows, true);
      });
    }
  }

  // About how many steps a listed node takes.
  std::size_t steps_per_node() const {
    return kLanes * (1 + votes_.size() / std::max<std::size_t>(nodes_.size(), 1));
  }

  // Returns the first vote of a listed node.
  std::size_t begin(std::int32_t s) const {
    return s == 0 ? 1 : nodes_[static_cast<std::size_t>(s - 1)].end;
  }

  // The scores of all classes sum to 1, so they need no normalisation.
  CERTREE_INLINE void add_log_loss(std::size_t first, std::size_t end, const double* score,
                                   double* loss) const {
    for (std::size_t a = first; a < end; ++a) {
      const double rows = votes_[a].rows;
      for (std::size_t i = 0; i < kLanes; ++i)
        loss[i] -= rows * log_positive(at_least_smallest(score[a * kLanes + i]));
    }
  }

  // Predicts the class of the largest score, on ties the lowest; rows of other classes are errors.
  CERTREE_INLINE void add_errors(std::size_t first, std::size_t end, const double* score,
                                 double* loss) const {
    double largest[kLanes] = {}, wrong[kLanes] = {};
    for (std::size_t a = first; a < end; ++a) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        const bool larger = score[a * kLanes + i] > largest[i];
        largest[i] = larger ? score[a * kLanes + i] : largest[i];
        wrong[i] = larger ? votes_[a].rows : wrong[i];
      }
    }
    for (std::size_t i = 0; i < kLanes; ++i) loss[i] += wrong[i];
  }

  CERTREE_INLINE void add_squares(std::size_t a, const double* score, double* loss) const {
    const NodeMoments& moments = moments_[a - 1];
    for (std::size_t i = 0; i < kLanes; ++i) {
      const double distance = score[a * kLanes + i] - moments.mean;
      loss[i] += votes_[a].rows * (distance * distance) + moments.squares;
    }
  }

  VoteLoss kind_;
  std::vector<ListedVote> votes_;    // by node; number 0 is a dummy of score 0
  std::vector<std::int32_t> class_;  // class_[a - 1]: class of vote a
  std::vector<NodeMoments>
      moments_;  // moments_[a - 1]: of vote a; empty unless the loss is squared
  std::vector<ListedNode> nodes_;
};

// Working memory of one thread.
struct Scratch {
  UpwardPass<kLanes> pass;
  Buffer<double> odds, reach, score;
  std::vector<double> theta;  // (n_terms, kLanes)
  Scratch(const PosteriorFamily& family, const VoteList& list)
      : pass(family),
        odds(make_buffer<double>(family.tree.size(), kLanes)),
        reach(make_buffer<double>(list.n_nodes() + 1, kLanes)),
        score(make_buffer<double>(list.n_votes(), kLanes)),
        theta(family.n_terms() * kLanes) {}
};

CERTREE_SIMD_CLONES void compute_scores(Scratch& scratch, const VoteList& list, PruningMode mode) {
  scratch.pass.run(mode, scratch.theta.data(), scratch.odds.get(), nullptr);
  list.sum_votes(scratch.odds.get(), scratch.reach.get(), scratch.score.get());
}
const ClonePointer<decltype(compute_scores)> compute_scores_here = compute_scores;

CERTREE_SIMD_CLONES void compute_losses(const Scratch& scratch, const VoteList& list,
                                        double* loss) {
  list.compute_losses(scratch.score.get(), loss);
}
const ClonePointer<decltype(compute_losses)> compute_losses_here = compute_losses;

// Computes the scores of kLanes posteriors at a time, and calls visit(scratch, first, n) with those
// of the posteriors first, ..., first + n - 1, from several threads.
template <class Visit>
void for_each_lane_group(const PosteriorFamily& family, const ThetaGrid& grid, const VoteList& list,
                         int n_threads, const Visit& visit) {
  constexpr auto width = static_cast<std::int64_t>(kLanes);
  const std::int64_t n_groups = (grid.theta.n_rows + width - 1) / width;
  const std::int64_t n_tasks = std::clamp<std::int64_t>(n_threads, 1, n_groups);
  parallel_for(n_tasks, n_threads, [&](std::int64_t task) {
    Scratch scratch(family, list);
    for (std::int64_t group = task; group < n_groups; group += n_tasks) {
      const std::int64_t first = group * width, filled = std::min(width, grid.theta.n_rows - first);
      for (std::int64_t i = 0; i < width; ++i) {
        const double* row = grid.theta.row(first + std::min(i, filled - 1));
        for (std::size_t f = 0; f < family.n_terms(); ++f)
          scratch.theta[f * kLanes + static_cast<std::size_t>(i)] = row[f];
      }
      compute_scores_here(scratch, list, grid.mode);
      visit(scratch, static_cast<std::size_t>(first), static_cast<std::size_t>(filled));
    }
  });
}

}  // namespace

void score_grid(const PosteriorFamily& family, const ThetaGrid& grid, const Votes& votes,
                const Counts& validation, VoteLoss kind, int n_threads, std::span<double> loss) {
  if (loss.empty()) return;
  const VoteList list(family.tree, votes, validation, kind);
  for_each_lane_group(family, grid, list, n_threads,
                      [&](const Scratch& scratch, std::size_t first, std::size_t n) {
                        double losses[kLanes];
                        compute_losses_here(scratch, list, losses);
                        std::copy_n(losses, n, loss.data() + first);
                      });
}

ValidationVotes validation_votes(const PosteriorFamily& family, const ThetaGrid& grid,
                                 const Votes& votes, const Counts& validation, VoteLoss kind,
                                 int n_threads) {
  const VoteList list(family.tree, votes, validation, kind);
  ValidationVotes result;
  list.for_each_leaf([&](std::size_t first, std::size_t end) {
    for (std::size_t a = first; a < end; ++a) {
      result.rows.push_back(list.rows(a));
      result.truth.push_back(list.truth(a));
    }
  });
  const auto n_grid = static_cast<std::size_t>(grid.theta.n_rows);
  result.vote.reserve(checked_size(result.rows.size(), n_grid));
  for ([[maybe_unused]] const std::size_t row : indices(result.rows.size(), n_grid))
    result.vote.resize(result.vote.size() + n_grid);
  const double least =
      kind == VoteLoss::squared ? -std::numeric_limits<double>::infinity() : kSmallest;
  for_each_lane_group(family, grid, list, n_threads,
                      [&](const Scratch& scratch, std::size_t from, std::size_t n) {
                        double* to = result.vote.data() + from;
                        list.for_each_leaf([&](std::size_t first, std::size_t end) {
                          for (std::size_t a = first; a < end; ++a, to += n_grid)
                            for (std::size_t i = 0; i < n; ++i)
                              to[i] = std::max(scratch.score[a * kLanes + i], least);
                        });
                      });
  return result;
}

double fit_mixture(std::span<const double> rows, Table<const double> probability,
                   std::int64_t n_steps, std::span<double> proportion) {
  const std::size_t n = proportion.size();
  std::ranges::fill(proportion, 1.0 / static_cast<double>(n));
  std::vector<double> responsibility(n);
  const auto mixture = [&](std::size_t a) {
    return std::inner_product(proportion.begin(), proportion.end(), probability.row(a), 0.0);
  };
  const double total = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (std::int64_t step = 0; step < n_steps; ++step) {
    std::ranges::fill(responsibility, 0.0);
    for (const std::size_t a : indices(rows.size(), 2 * n)) {
      const double scale = rows[a] / mixture(a);
      for (std::size_t i = 0; i < n; ++i) responsibility[i] += scale * probability.row(a)[i];
    }
    for (std::size_t i = 0; i < n; ++i) proportion[i] *= responsibility[i] / total;
  }
  double loss = 0.0;
  for (const std::size_t a : indices(rows.size(), n)) loss -= rows[a] * std::log(mixture(a));
  return loss;
}

}  // namespace certree
