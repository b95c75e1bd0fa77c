// Makes the answer of GET /v1/server.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "engine/api/device_monitor.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// Returns the server as an object of plain JSON (docs/use/openai.md). Names no file and no folder,
// because every viewer may see it.
nlohmann::json ServerObject(const wan::v1::ServerInfo& info,
                            const std::vector<wan::v1::Model>& models,
                            const std::vector<DeviceSample>& devices);

}  // namespace wan::server
