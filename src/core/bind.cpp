// The module, its doors in the order of the flow.
#include "bind.hpp"

namespace {

void be_main_thread() { certree::bindings::main_thread = PyThread_get_thread_ident(); }

void bind_interrupts(nanobind::module_& core) {
  const auto main = nanobind::module_::import_("threading").attr("main_thread")();
  certree::bindings::main_thread = nanobind::cast<unsigned long>(main.attr("ident"));
  // Where there is no fork there is nothing to register.
  const auto os = nanobind::module_::import_("os");
  if (nanobind::hasattr(os, "register_at_fork"))
    os.attr("register_at_fork")(nanobind::arg("after_in_child") =
                                    nanobind::cpp_function(&be_main_thread));
  core.def(
      "looks", [] { return certree::bindings::last_looks; },
      "How often this thread's last call looked whether to stop.");
  core.def(
      "interrupt_at",
      [](std::int64_t look, std::int64_t steps_between_looks) {
        using certree::bindings::looking;
        if (look < 0 || steps_between_looks < 1)
          throw std::invalid_argument("look must be at least 0, and steps_between_looks 1");
        const std::int64_t left = looking.stops_at;
        looking = {steps_between_looks, look == 0 ? certree::kNeverStops : look};
        return left == certree::kNeverStops ? 0 : left;
      },
      nanobind::arg("look"), nanobind::arg("steps_between_looks") = certree::kStepsBetweenChecks,
      "For tests: this thread's look of that number from now on raises KeyboardInterrupt, and 0 "
      "takes it back. Returns how many looks were left to the one before.");
}

}  // namespace

NB_MODULE(_core, core) {
  core.doc() = "The loops of certree over plain arrays.";
  bind_interrupts(core);
  certree::bindings::bind_rows(core);
  certree::bindings::bind_grow(core);
  certree::bindings::bind_binned(core);
  certree::bindings::bind_tree(core);
  certree::bindings::bind_stats(core);
  certree::bindings::bind_weights(core);
  certree::bindings::bind_prunings(core);
  certree::bindings::bind_votes(core);
  certree::bindings::bind_tune(core);
  certree::bindings::bind_certificates(core);
  certree::bindings::bind_ensembles(core);
  certree::bindings::bind_parts(core);
  certree::bindings::bind_cells_of_parts(core);
  certree::bindings::bind_leaves(core);
  certree::bindings::bind_boolean(core);
  certree::bindings::bind_explain(core);
}
