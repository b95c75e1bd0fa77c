// Makes the options of each part of the server from its configuration.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/engine.h"
#include "server/auth/principal.h"
#include "server/calls/connection_acceptor.h"
#include "server/calls/server_description.h"
#include "server/config/server_config.h"
#include "server/jobs/job_service.h"
#include "server/jobs/lora_folders.h"
#include "server/rpc/services.h"
#include "server/tracing/span_exporter.h"
#include "server/webhooks/webhook_rules.h"

namespace wan::server {

// Returns the names of the models to load at the start.
std::vector<std::string> ModelNamesOf(const ServerConfig& config);

// Returns the folders of LoRAs, and the schedules of the LoRAs in them.
LoraFolders LoraFoldersOf(const ServerConfig& config);

// Returns the devices of each group, for example "cuda:0,1" and "cuda:2".
std::vector<std::string> DeviceNamesOf(const ServerConfig& config);

// Returns the facts for GetServerInfo, with the current time as the server's start; The facts also
// list `libraries` in addition to the libraries that the server links.
ServerFacts FactsOf(const ServerConfig& config, const Engine& engine, const Clock& clock,
                    std::map<std::string, std::string> libraries);

// Returns the connection limits of a port.
ConnectionLimits ConnectionLimitsOf(const ServerConfig& config);

StopSettings StopSettingsOf(const ServerConfig& config);

// Returns the role of callers whose certificate the file of principals does not name; nullopt: the
// server refuses these certificates.
std::optional<Role> CertificateRoleOf(const ServerConfig& config);

WebhookRules WebhookRulesOf(const ServerConfig& config);

// Returns the options for traces. The attributes are service.name, service.version,
// service.instance.id and host.name; attributes in the config are added or replace these.
SpanExporterOptions TraceOptionsOf(const ServerConfig& config);

// Returns what opens the database that `store` names; null if it is unset.
StoreOpener StoreOpenerOf(const ServerConfig& config);

// Returns the options of JobService, except sinks, listeners, quotas and webhooks, which other
// parts of the server set. `authenticated` says whether callers must authenticate. Callers may name
// models only below model_roots. They may name any model only if callers need not authenticate, no
// other machine can reach a gRPC address, and model_roots is empty.
JobServiceOptions JobOptionsOf(const ServerConfig& config, bool authenticated);

}  // namespace wan::server
