// Defects planted in the code under test: by hand, one per idea, and by rule, every order weakened and every write dropped, one after
// the other. A proof is worth as much as it kills.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checker/site.hpp"
#include "scenarios/scenarios.hpp"

namespace rayelastic::model {

struct Mutant {
  std::string name;
  std::vector<const char*> structures;  // whose scenarios have to kill it
  std::function<void()> plant;
  std::string needless = {};  // why it may live; empty: it has to die
};

// Sites are known once every scenario has run: call these afterwards.
[[nodiscard]] std::vector<Mutant> mutants_by_hand();
[[nodiscard]] std::vector<Mutant> mutants_by_rule();
void heal();

}  // namespace rayelastic::model
