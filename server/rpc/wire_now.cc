#include "server/rpc/wire_now.h"

#include <utility>

#include "server/rpc/descriptors.h"

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
  wire.request_bytes_limit = admission.limits().request_bytes;
  wire.streams = calls.streams;
  wire.streams_limit = admission.limits().streams;
  wire.downloads = calls.downloads;
  wire.downloads_limit = admission.limits().downloads;
  wire.refused_calls = {{"requests", calls.refused_requests},
                        {"streams", calls.refused_streams},
                        {"downloads", calls.refused_downloads}};
  return wire;
}

}  // namespace wan::server
