// Makes the options of each part of the server from its configuration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "server/auth/principal.h"
#include "server/calls/connection_acceptor.h"
#include "server/config/server_config.h"
#include "server/jobs/job_service.h"
#include "server/rpc/services.h"
#include "server/tracing/span_exporter.h"
#include "server/webhooks/webhook_rules.h"

namespace wan::server {

// The names of the models that are loaded at the start.
std::vector<std::string> ModelNamesOf(const ServerConfig& config);

// The devices of each group: "cuda:0,1", "cuda:2".
std::vector<std::string> DeviceNamesOf(const ServerConfig& config);

// The facts for Telemetry of a server that starts now; `libraries` are those that the server does
// not link itself.
ServerFacts FactsOf(const ServerConfig& config, const Engine& engine, const Clock& clock,
                    std::map<std::string, std::string> libraries);

// The options of each port.
ConnectionLimits ConnectionLimitsOf(const ServerConfig& config);

StopSettings StopSettingsOf(const ServerConfig& config);

// The role of callers with a certificate; none where a certificate alone is not enough.
std::optional<Role> CertificateRoleOf(const ServerConfig& config);

WebhookRules WebhookRulesOf(const ServerConfig& config);

// The server's attributes in traces are service.name, service.version, service.instance.id and
// host.name; those of the config come in place of them or beside them.
SpanExporterOptions TraceOptionsOf(const ServerConfig& config);

// Everything except sinks, listeners, quotas and webhooks, which other parts of the server set.
// `authenticated`: callers have to say who they are. Models that callers name may lie anywhere if
// nobody has to, no gRPC address is reached from other machines, and model_roots is empty;
// otherwise only below model_roots.
JobServiceOptions JobOptionsOf(const ServerConfig& config, bool authenticated);

}  // namespace wan::server
