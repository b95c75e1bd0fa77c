// Runs the commands of wanctl. Each function takes the options of a command and returns the exit
// code.
#pragma once

#include "client/wanctl/exit_code.h"
#include "client/wanctl/options.h"
#include "client/wanctl/session.h"

namespace wan::client {

// Defined in follow_commands.cc: commands that follow a job to its end.
ExitCode Run(Session& session, const GenerateCommand& command);
ExitCode Run(Session& session, const WatchCommand& command);
ExitCode Run(Session& session, const ReplayCommand& command);
ExitCode Run(Session& session, const CalibrateCommand& command);

// Defined in job_commands.cc.
ExitCode Run(Session& session, const SubmitCommand& command);
ExitCode Run(Session& session, const QuoteCommand& command);
ExitCode Run(Session& session, const GetCommand& command);
ExitCode Run(Session& session, const ListCommand& command);
ExitCode Run(Session& session, const CancelCommand& command);
ExitCode Run(Session& session, const DeleteCommand& command);
ExitCode Run(Session& session, const DownloadCommand& command);
ExitCode Run(Session& session, const ReceiptCommand& command);

// Defined in report_command.cc and bench_command.cc.
ExitCode Run(Session& session, const ReportCommand& command);
ExitCode Run(Session& session, const BenchCommand& command);

// compare_command.cc
ExitCode Run(Session& session, const CompareCommand& command);

// Defined in server_commands.cc.
ExitCode Run(Session& session, const ListModelsCommand& command);
ExitCode Run(Session& session, const LoadModelCommand& command);
ExitCode Run(Session& session, const DownloadModelCommand& command);
ExitCode Run(Session& session, const UnloadModelCommand& command);
ExitCode Run(Session& session, const WarmupModelCommand& command);
ExitCode Run(Session& session, const DevicesCommand& command);
ExitCode Run(Session& session, const InfoCommand& command);
ExitCode Run(Session& session, const HealthCommand& command);
ExitCode Run(Session& session, const UsageCommand& command);
ExitCode Run(Session& session, const DrainCommand& command);
ExitCode Run(Session& session, const UndrainCommand& command);

// Defined in top_command.cc.
ExitCode Run(Session& session, const TopCommand& command);

}  // namespace wan::client
