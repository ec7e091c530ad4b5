// What is checked: small programs on the structures under test, each with its own idea of what must not happen.
#pragma once

#include <vector>

#include "checker/search.hpp"

namespace rayelastic::model {

// Defects that derived classes of the code under test plant, for mutants that no change of one atomic access can express.
enum class Fault {
  None,
  PushKeepsProducerLock,  // erratum E1 of PLDI'17 Fig. 3: push returns without prodUnlock
  VisitKeepsConsumerLock,
  SwitchWithoutDrain,
  RetireWithoutSecondLook,  // the consumer that saw nothing goes, whatever came meanwhile
  AwaitedForgotten,         // who retires doesn't tell whoever waits for that
  AwaitsNobody,             // who waits for a queue that nobody will look into goes on waiting
  NoAnnounce,               // the push after a retirement tells nobody
  WaiterWithoutSecondLook,
  SuspendedKeepsNotification,
  NoteForgotten,    // unlock loses the notes
  PartialPastMark,  // a producer runs the operator in part although a mark waits in the queue
  EntersWithoutFence,
  HoldsWithoutFence,
};
inline Fault fault = Fault::None;

[[nodiscard]] std::vector<Case> queue_cases();
[[nodiscard]] std::vector<Case> lock_cases();
[[nodiscard]] std::vector<Case> list_cases();  // free list, alone and with the notifier
[[nodiscard]] std::vector<Case> port_cases();
[[nodiscard]] std::vector<Case> hold_cases();
[[nodiscard]] std::vector<Case> copy_cases();

}  // namespace rayelastic::model
