#include "benchmarks/bench_flags.h"

namespace wan {

void AddModelFlag(CLI::App& app, std::string& value, const std::string& help) {
  app.add_option("--model", value, help)->capture_default_str();
}

void AddDeviceFlag(CLI::App& app, std::string& value) {
  app.add_option("--device", value, "cpu or cuda:N")->capture_default_str();
}

void AddDtypeFlag(CLI::App& app, std::string& value, const std::string& help) {
  app.add_option("--dtype", value, help)
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
}

void AddShapeFlag(CLI::App& app, std::string& value, const std::string& help) {
  app.add_option("--shape", value, help)->capture_default_str();
}

void AddRepeatsFlag(CLI::App& app, int& value, const std::string& help) {
  app.add_option("--repeats", value, help)->check(CLI::PositiveNumber)->capture_default_str();
}

void AddWarmupFlag(CLI::App& app, int& value) {
  app.add_option("--warmup", value, "calls that do not count")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void AddSecondsFlag(CLI::App& app, double& value) {
  app.add_option("--seconds", value,
                 "instead of --repeats: as many calls as take so many seconds, after a third as "
                 "many that do not count; 0: off")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

}  // namespace wan
