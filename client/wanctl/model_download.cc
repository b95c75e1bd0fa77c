#include "client/wanctl/model_download.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace wan::client {

namespace fs = std::filesystem;

namespace {

constexpr char kScript[] = "wanserve-fetch-model";

// Starts a program in a process group of its own, with stdout going to stderr and without the
// signals that wanctl blocks. Returns 0 or an errno.
int Spawn(const std::vector<std::string>& command, pid_t& pid) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const absl::Cleanup free_both = [&] {
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
  };
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  return posix_spawnp(&pid, arguments.front(), &actions, &attributes, arguments.data(), environ);
}

}  // namespace

std::vector<std::string> ModelLists::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path ModelLists::ListOf(const std::string& name) const {
  return folder / absl::StrCat(name, ".txt");
}

absl::StatusOr<ModelLists> FindModelLists(const fs::path& program_folder) {
  const fs::path built = program_folder / "../../deploy/models";
  for (const ModelLists& lists :
       {ModelLists{program_folder / kScript, program_folder / "../share/wanserve/models"},
        ModelLists{built / kScript, built}}) {
    std::error_code ignored;
    if (fs::exists(lists.script, ignored) && fs::is_directory(lists.folder, ignored)) return lists;
  }
  return absl::NotFoundError(absl::StrCat(
      kScript, " is not beside wanctl; it is in the package wanserve, and in deploy/models"));
}

absl::Status DownloadModel(const ModelLists& lists, const std::string& name,
                           const std::string& folder, const std::string& base,
                           const std::stop_token& stop) {
  std::vector<std::string> command = {"sh", lists.script.string(), lists.ListOf(name).string(),
                                      folder};
  if (!base.empty()) command.insert(command.end(), {"--base", base});
  pid_t pid = 0;
  if (const int error = Spawn(command, pid); error != 0) {
    return absl::InternalError(
        absl::StrCat("sh could not be started: ", std::generic_category().message(error)));
  }
  int state = 0;
  {
    const std::stop_callback end_group(stop, [pid] { kill(-pid, SIGTERM); });
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
    }
  }
  if (stop.stop_requested()) return absl::CancelledError("the download was stopped");
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(kScript, " has failed"));
}

}  // namespace wan::client
