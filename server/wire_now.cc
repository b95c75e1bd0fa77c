#include "server/wire_now.h"

#include <utility>

#include "server/process/descriptors.h"

namespace wan::server {

WireStats WireNow(GrpcPort& port, GrpcPort* admin_port, const Admission& admission) {
  ConnectionStats connections = port.Stats();
  if (admin_port != nullptr) connections += admin_port->Stats();
  const DescriptorUse descriptors = DescriptorsNow();
  WireStats wire;
  wire.connections = connections.open;
  wire.connections_limit = connections.limit;
  wire.refused_connections = {{"address", connections.refused_address},
                              {"total", connections.refused_total},
                              {"descriptors", connections.refused_descriptors}};
  wire.misused_connections = std::move(connections.misused);
  wire.descriptors = descriptors.open;
  wire.descriptors_limit = descriptors.limit;
  const AdmissionStats calls = admission.Stats();
  wire.request_bytes = calls.request_bytes;
  const PlaceLimits& limits = admission.limits().callers;
  wire.request_bytes_limit = limits.request_bytes;
  wire.answer_bytes = calls.answer_bytes;
  wire.answer_bytes_limit = limits.answer_bytes;
  wire.streams = calls.streams;
  wire.streams_limit = limits.streams;
  wire.downloads = calls.downloads;
  wire.downloads_limit = limits.downloads;
  wire.refused_calls = {{"requests", calls.refused_requests},
                        {"answers", calls.refused_answers},
                        {"streams", calls.refused_streams},
                        {"downloads", calls.refused_downloads},
                        {"public", calls.refused_public}};
  return wire;
}

}  // namespace wan::server
