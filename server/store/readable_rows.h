// Prevents rows that could not be read back, as a second check after those of the code that takes
// texts from outside.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// INTERNAL, naming the field, if a row of the new job could not be read back. `where` names the
// store. Takes no lock.
absl::Status CheckReadsBack(const std::string& where, const StoredJob& stored,
                            std::span<const wan::v1::Event> events);

// Returns all changes with MendTexts applied to the messages that could not be read back, and tells
// `on_problem` of each; empty if there is none. Unlike a new job, a change is not refused: a job
// whose end cannot be stored would never end. Takes no lock.
std::vector<JobChange> MendedChanges(const std::string& where, std::span<const JobChange> changes,
                                     const std::function<void(const absl::Status&)>& on_problem);

}  // namespace wan::server
