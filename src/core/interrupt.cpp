#include "interrupt.hpp"

namespace certree {

bool Call::is_to_stop() {
  if (!stops_ && std::this_thread::get_id() == caller_ && Clock::now() >= next_question_) {
    if (should_stop()) stops_ = true;
    next_question_ = Clock::now() + kBetweenQuestions;
  }
  return stops_;
}

void Call::look() {
  if (++looks_ >= looking_.stops_at) stops_ = true;
  if (is_to_stop()) throw Interrupted();
}

void spend_in_bulk(std::int64_t steps) { spend(steps); }

void look() {
  Call* const call = own_work.call;
  own_work.steps_left = call ? call->steps_between_looks() : kStepsBetweenLooks;
  if (call) call->look();
}

}  // namespace certree
