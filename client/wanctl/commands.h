// Runs the commands. Each function takes a command's options and returns the exit code.
#pragma once

#include "client/wanctl/exit_code.h"
#include "client/wanctl/options.h"
#include "client/wanctl/session.h"

namespace wan::client {

// follow_commands.cc: commands that follow a job to its end
ExitCode Run(Session& session, const GenerateCommand& command);
ExitCode Run(Session& session, const WatchCommand& command);
ExitCode Run(Session& session, const ReplayCommand& command);

// job_commands.cc
ExitCode Run(Session& session, const SubmitCommand& command);
ExitCode Run(Session& session, const QuoteCommand& command);
ExitCode Run(Session& session, const GetCommand& command);
ExitCode Run(Session& session, const ListCommand& command);
ExitCode Run(Session& session, const CancelCommand& command);
ExitCode Run(Session& session, const DeleteCommand& command);
ExitCode Run(Session& session, const DownloadCommand& command);
ExitCode Run(Session& session, const ReceiptCommand& command);

// report_command.cc, bench_command.cc
ExitCode Run(Session& session, const ReportCommand& command);
ExitCode Run(Session& session, const BenchCommand& command);

// server_commands.cc
ExitCode Run(Session& session, const ListModelsCommand& command);
ExitCode Run(Session& session, const LoadModelCommand& command);
ExitCode Run(Session& session, const UnloadModelCommand& command);
ExitCode Run(Session& session, const WarmupModelCommand& command);
ExitCode Run(Session& session, const DevicesCommand& command);
ExitCode Run(Session& session, const InfoCommand& command);
ExitCode Run(Session& session, const HealthCommand& command);
ExitCode Run(Session& session, const UsageCommand& command);
ExitCode Run(Session& session, const DrainCommand& command);
ExitCode Run(Session& session, const UndrainCommand& command);

// top_command.cc
ExitCode Run(Session& session, const TopCommand& command);

}  // namespace wan::client
