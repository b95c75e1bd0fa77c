// Says why the server takes no jobs now.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::server {

// The values of NotServing::reason for states that end by themselves or that an operator has
// caused.
inline constexpr std::string_view kNotServingLoading = "MODEL_LOADING";
inline constexpr std::string_view kNotServingDraining = "DRAINING";
inline constexpr std::string_view kNotServingStopping = "STOPPING";

// One reason why the server takes no jobs. The texts name no folder, because every caller of the
// health check may see them.
struct NotServing {
  std::string reason;   // for programs, for example "DISK_FULL"
  std::string message;  // a sentence without a period: what is wrong, and what ends it

  friend bool operator==(const NotServing&, const NotServing&) = default;
};

// All reasons that hold now; empty while the server is SERVING.
using NotServingReasons = std::vector<NotServing>;

// Joins the `reason` of all entries: "DRAINING, DISK_FULL".
std::string CodesOf(const NotServingReasons& reasons);
// Joins the `message` of all entries into one line: "MESSAGE; MESSAGE".
std::string OneLine(const NotServingReasons& reasons);

}  // namespace wan::server
