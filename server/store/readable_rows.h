// Prevents the store from writing rows that it could not read back. These functions make a second
// check; the code that receives texts from callers makes the first.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns INTERNAL, naming the field, if a row of the new job could not be read back. `where` names
// the store in the message. Takes no lock.
absl::Status CheckReadsBack(const std::string& where, const StoredJob& stored,
                            std::span<const wan::v1::Event> events);

// If messages of the changes could not be read back, returns all changes with these messages
// repaired by MendTexts, and reports each repair to `on_problem`; otherwise returns an empty list.
// Repairs changes instead of refusing them, because a job whose end cannot be stored would never
// end. Takes no lock.
std::vector<JobChange> MendedChanges(const std::string& where, std::span<const JobChange> changes,
                                     const std::function<void(const absl::Status&)>& on_problem);

}  // namespace wan::server
