// Formats the server's messages as tables and texts for people. Each result ends with a newline,
// and control characters from the server are replaced. All functions are pure.
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

// One line for each job. Here and below, pass `colours` for a terminal that shows them.
std::string JobTable(const std::vector<wan::v1::Job>& jobs, bool colours = false);

// Everything about one job: state, request, times, artifacts, Job.omissions, lost attempts,
// Job.provenance and its error. Leaves out unset fields.
std::string JobText(const wan::v1::Job& job);

// The receipt of a job's video: its request, provenance, a line for each file of the model, and the
// artifacts.
std::string ReceiptText(const wan::v1::Receipt& receipt);

// One line for each model, then the error of each model that failed.
std::string ModelTable(const std::vector<wan::v1::Model>& models, bool colours = false);

// One line for each device.
std::string DeviceTable(const wan::v1::WatchDevicesResponse& samples, bool colours = false);

// A line about the job that ran, and one with the number of waiting jobs.
std::string DrainText(const wan::v1::DrainResponse& drained);
std::string UndrainText(const wan::v1::UndrainResponse& undrained);

// The reasons why a server is NOT_SERVING, on one line: "MESSAGE; MESSAGE".
std::string ReasonsText(
    const google::protobuf::RepeatedPtrField<wan::v1::NotServingReason>& reasons);

// A line for each quota of a principal: its use and its limit.
std::string UsageText(const wan::v1::Usage& usage);

// Versions, devices and the number of jobs.
std::string ServerInfoText(const wan::v1::ServerInfo& info);

// A block of "Key: value" lines with the cost of a request. Leaves out unknown values.
std::string QuoteText(const wan::v1::QuoteResponse& quote);

}  // namespace wan::client
