// The module certree._core: registers the bindings, in the order of the pipeline, and sets up
// interrupts.
#include "bind.hpp"
#include "scratch.hpp"

namespace {

// Run in the child after a fork, whose only thread becomes the main thread.
void set_main_thread() { certree::bindings::main_thread = PyThread_get_thread_ident(); }

void bind_interrupts(nanobind::module_& core) {
  const auto main = nanobind::module_::import_("threading").attr("main_thread")();
  certree::bindings::main_thread = nanobind::cast<unsigned long>(main.attr("ident"));
  // Systems without fork have no register_at_fork.
  const auto os = nanobind::module_::import_("os");
  if (nanobind::hasattr(os, "register_at_fork"))
    os.attr("register_at_fork")(nanobind::arg("after_in_child") =
                                    nanobind::cpp_function(&set_main_thread));
  core.def(
      "count_interrupt_checks", [] { return certree::bindings::n_checks_of_last_call; },
      "Return how often this thread's last call checked for an interrupt.");
  core.def(
      "interrupt_at",
      [](std::int64_t check, std::int64_t steps_between_checks) {
        using certree::bindings::check_schedule;
        if (check < 0 || steps_between_checks < 1)
          throw std::invalid_argument("check must be at least 0, and steps_between_checks 1");
        const std::int64_t left = check_schedule.interrupt_at;
        check_schedule = {steps_between_checks, check == 0 ? certree::kNeverInterrupts : check};
        return left == certree::kNeverInterrupts ? 0 : left;
      },
      nanobind::arg("check"), nanobind::arg("steps_between_checks") = certree::kStepsBetweenChecks,
      "For tests: raise KeyboardInterrupt at the check-th interrupt check of this thread from now "
      "on, "
      "or never if check is 0. Return how many checks were left before an earlier request took "
      "effect, "
      "or 0 if there was none.");
}

void bind_scratch(nanobind::module_& core) {
  core.def(
      "set_scratch_folder",
      [](std::string folder) {
        return std::exchange(certree::bindings::next_scratch_folder, std::move(folder));
      },
      nanobind::arg("folder"),
      "Keep the large arrays of the next calls of this thread in files of a folder, or in memory "
      "if "
      "it "
      "is empty. Return the folder so far.");
  nanobind::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const certree::ScratchError& one) {
      PyErr_SetString(PyExc_OSError, one.what());
    }
  });
}

}  // namespace

NB_MODULE(_core, core) {
  core.doc() = "The loops of certree over plain arrays.";
  bind_interrupts(core);
  bind_scratch(core);
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
  certree::bindings::bind_forest_leaves(core);
  certree::bindings::bind_boolean(core);
  certree::bindings::bind_explain(core);
}
