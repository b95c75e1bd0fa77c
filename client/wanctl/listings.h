// Formats the server's messages as tables and texts for people. Results end with a newline; control
// characters from the server are replaced. All functions are pure.
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

// Returns one line for each job. In all functions `colours` adds terminal colours.
std::string JobTable(const std::vector<wan::v1::Job>& jobs, bool colours = false);

// Returns all set fields of a job: state, request, times, artifacts, omissions, lost attempts,
// provenance and error.
std::string JobText(const wan::v1::Job& job);

// Returns a receipt: request, provenance, a line for each file of the model, and the artifacts.
std::string ReceiptText(const wan::v1::Receipt& receipt);

// Returns one line for each model, then the error of each FAILED model.
std::string ModelTable(const std::vector<wan::v1::Model>& models, bool colours = false);

// Returns one line for each device.
std::string DeviceTable(const wan::v1::WatchDevicesResponse& samples, bool colours = false);

// Return lines about the jobs that ran, and the number of waiting jobs.
std::string DrainText(const wan::v1::DrainResponse& drained);
std::string UndrainText(const wan::v1::UndrainResponse& undrained);

// Returns the reasons why a server is NOT_SERVING, on one line: "MESSAGE; MESSAGE".
std::string ReasonsText(
    const google::protobuf::RepeatedPtrField<wan::v1::NotServingReason>& reasons);

// Returns a line with use and limit for each quota of a principal.
std::string UsageText(const wan::v1::Usage& usage);

// Returns versions, devices and the number of jobs.
std::string ServerInfoText(const wan::v1::ServerInfo& info);

// Returns "Key: value" lines with the cost of a request, without unknown values.
std::string QuoteText(const wan::v1::QuoteResponse& quote);

}  // namespace wan::client
