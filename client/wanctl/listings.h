// The server's messages as tables and texts for people. Each ends with a line end.
#pragma once

#include <string>
#include <vector>

#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

// One line a job.
std::string JobTable(const std::vector<wan::v1::Job>& jobs);

// Everything about one job.
std::string JobText(const wan::v1::Job& job);

// The stage table, with the benchmark's columns, the total last. What was not measured is '-'.
std::string ReportTable(const wan::v1::JobReport& report);

// One line a model, and why it failed where it did.
std::string ModelTable(const std::vector<wan::v1::Model>& models);

// One line a device.
std::string DeviceTable(const wan::v1::WatchDevicesResponse& samples);

std::string ServerInfoText(const wan::v1::ServerInfo& info);

}  // namespace wan::client
