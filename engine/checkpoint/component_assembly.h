// Builds a component of a checkpoint from its files.
#pragma once

#include <string>
#include <utility>

#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/weight_tables.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Builds a component. `read_config` makes its config from the files; if files and config are sound,
// the weights are added.
template <typename Config, typename ReadConfig>
Component<Config> Assemble(std::string name, std::string where, TensorFiles files, Naming naming,
                           ReadConfig read_config) {
  Component<Config> component{.name = std::move(name), .where = std::move(where)};
  component.files = std::move(files);
  component.problems = component.files.problems;
  component.config = read_config(component.files, component.where, component.problems);
  if (component.config.has_value() && component.files.problems.empty()) {
    component.weights = MakeFileWeights(component.files, ExpectedTensors(*component.config), naming,
                                        component.where, component.problems);
  }
  return component;
}

}  // namespace wan
