#include "engine/pipeline/vae_pass.h"

#include <string>

namespace wan {

VaePass MakeVaePass(const WorkGate& gate, const GenerationRequest& request, Recorder* recorder) {
  VaePass pass(gate, *request.vae_precision);
  pass.decoder = *request.decoder;
  if (recorder == nullptr) return pass;
  pass.on_fallback = [recorder](VaePrecision from, VaePrecision to) {
    recorder->Record({"vae_fallback",
                      1,
                      {{"from", std::string(NameOf(from))}, {"to", std::string(NameOf(to))}}});
  };
  return pass;
}

}  // namespace wan
