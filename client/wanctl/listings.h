// Formats the server's messages as tables and texts for people. The texts end with a newline;
// control characters that the server sent are replaced. All functions are pure.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <string>
#include <vector>

#include "wan/v1/administration.pb.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::client {

// Returns a table with one line for each job. In all functions, `colours` says whether to add the
// terminal's codes for colours.
std::string JobTable(const std::vector<wan::v1::Job>& jobs, bool colours = false);

// Returns all fields of a job that are set: state, request, times, artifacts, omissions, lost
// attempts, provenance and error.
std::string JobText(const wan::v1::Job& job);

// Returns the text of a receipt: request, provenance, a line for each file of the model, and the
// artifacts.
std::string ReceiptText(const wan::v1::Receipt& receipt);

// Returns one line for each model, then the error of each FAILED model.
std::string ModelTable(const std::vector<wan::v1::Model>& models, bool colours = false);

// Returns a table with one line for each device.
std::string DeviceTable(const wan::v1::WatchDevicesResponse& samples, bool colours = false);

// The two functions return lines about the jobs that were running, and the number of jobs that
// wait.
std::string DrainText(const wan::v1::DrainResponse& drained);
std::string UndrainText(const wan::v1::UndrainResponse& undrained);

// Returns the reasons why a server is NOT_SERVING, on one line: "MESSAGE; MESSAGE".
std::string ReasonsText(
    const google::protobuf::RepeatedPtrField<wan::v1::NotServingReason>& reasons);

// Returns, for each quota of a principal, a line with the use and the limit.
std::string UsageText(const wan::v1::Usage& usage);

// Returns the server's versions and devices, and the number of its jobs.
std::string ServerInfoText(const wan::v1::ServerInfo& info);

// Returns lines "Key: value" about what a request costs; unknown values are left out.
std::string QuoteText(const wan::v1::QuoteResponse& quote);

}  // namespace wan::client
