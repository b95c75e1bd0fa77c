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

// One line for each job. With `colours`, here and below, for a terminal that shows them.
std::string JobTable(const std::vector<wan::v1::Job>& jobs, bool colours = false);

// Everything about one job: state, request, times, artifacts, what it went without (Job.omissions),
// the attempts it lost, on what its bits depend (Job.provenance), and its error. Leaves out what is
// not set.
std::string JobText(const wan::v1::Job& job);

// What a job's video was made from: its request, on what its bits depend, a line for each file of
// the model, and the artifacts.
std::string ReceiptText(const wan::v1::Receipt& receipt);

// One line for each model, then the error of each model that failed.
std::string ModelTable(const std::vector<wan::v1::Model>& models, bool colours = false);

// One line for each device.
std::string DeviceTable(const wan::v1::WatchDevicesResponse& samples, bool colours = false);

// What became of the job that ran, and how many wait, a line each.
std::string DrainText(const wan::v1::DrainResponse& drained);
std::string UndrainText(const wan::v1::UndrainResponse& undrained);

// Why a server is NOT_SERVING, on one line: "MESSAGE; MESSAGE".
std::string ReasonsText(
    const google::protobuf::RepeatedPtrField<wan::v1::NotServingReason>& reasons);

// A line for each thing that a principal uses, with what it may.
std::string UsageText(const wan::v1::Usage& usage);

// Versions, devices and the number of jobs.
std::string ServerInfoText(const wan::v1::ServerInfo& info);

// A block of "Key: value" lines: what a request would take. What is not known yet is left out.
std::string QuoteText(const wan::v1::QuoteResponse& quote);

}  // namespace wan::client
