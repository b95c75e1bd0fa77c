// Helps people who start wanserve by hand, without settings.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/config/host_port.h"

namespace wan::server {

// Returns wanserve's folder in the user's data folder: $XDG_DATA_HOME/wanserve, or else
// ~/.local/share/wanserve; empty if the environment has neither variable.
std::string DefaultDataDir();

// The addresses on which a server listens, with or without TLS.
struct ListeningPorts {
  HostPort grpc;
  std::optional<HostPort> http;
  bool http_page = false;
  bool tls = false;
};

// Returns the next commands for a person at a terminal, in lines that end with a newline. `program`
// is how the person has called this one, for example "build/bin/wanserve": wanctl is beside it. A
// pure function.
std::string NextSteps(const ListeningPorts& ports, std::string_view program);

}  // namespace wan::server
