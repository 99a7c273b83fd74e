// The module, its doors in the order of the flow.
#include "bind.hpp"

NB_MODULE(_core, core) {
  core.doc() = "The loops of certree over plain arrays.";
  certree::door::bind_grow(core);
  certree::door::bind_tree(core);
  certree::door::bind_stats(core);
  certree::door::bind_weights(core);
  certree::door::bind_prunings(core);
  certree::door::bind_votes(core);
  certree::door::bind_tune(core);
  certree::door::bind_certificates(core);
}
