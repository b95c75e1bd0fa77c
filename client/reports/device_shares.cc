// Builds the table that shows each device's work for a job of a device group.
#include <optional>

#include "client/reports/sections.h"

namespace wan::client::reports {
namespace {

constexpr double kJoulesOfWattHour = 3600;

template <typename Value>
std::optional<double> If(bool known, Value value) {
  return known ? std::optional<double>(static_cast<double>(value)) : std::nullopt;
}

}  // namespace

Table DeviceTable(const wan::v1::JobReport& report) {
  Table table;
  table.columns = {{"Device", "device"},
                   {"Name", "name"},
                   {"SM Act (%)", "sm_percent"},
                   {"Peak Mem (GiB)", "memory_peak_gib"},
                   {"Weights (GiB)", "weights_peak_gib"},
                   {"Power (W)", "power_watts"},
                   {"Energy (Wh)", "energy_watt_hours"},
                   {"Temp (C)", "temperature_peak_celsius"},
                   {"Throttled (s)", "throttled_seconds"},
                   {"Sent (GiB)", "exchanged_gib"},
                   {"Waited (s)", "exchange_seconds"},
                   {"Waited (%)", "exchange_percent"}};
  const double total = TotalSeconds(report);
  for (const wan::v1::DeviceShare& share : report.devices()) {
    const std::optional<double> waited = If(share.has_exchange_seconds(), share.exchange_seconds());
    const std::optional<double> sent = If(share.has_exchanged_bytes(), share.exchanged_bytes());
    table.rows.push_back(
        {share.device(), TextCell(share.name()),
         CellOf(If(share.has_sm_activity_percent(), share.sm_activity_percent()), 1),
         CellOf(If(share.has_gpu_memory_peak_bytes(), share.gpu_memory_peak_bytes()), 2,
                1 / kGibibyte),
         CellOf(If(share.has_gpu_weights_peak_bytes(), share.gpu_weights_peak_bytes()), 2,
                1 / kGibibyte),
         CellOf(If(share.has_power_watts(), share.power_watts()), 0),
         CellOf(If(share.has_energy_joules(), share.energy_joules()), 1, 1 / kJoulesOfWattHour),
         CellOf(If(share.has_temperature_peak_celsius(), share.temperature_peak_celsius()), 0),
         CellOf(If(share.has_throttled_seconds(), share.throttled_seconds()), 2),
         sent ? Cell(Measure(*sent / kGibibyte, 2)) : Cell(),
         waited ? Cell(Measure(*waited, 2)) : Cell(),
         waited && total > 0 ? Cell(Number{*waited / total * 100, 1}) : Cell()});
  }
  DropEmptyColumns(table);
  table.note =
      "The devices of the group, in the order of their ranks, over the whole attempt. Sent is what "
      "a device gave to the others, Waited the time in which it had nothing to compute until they "
      "gave it something; its percentage is of Total_Execution.";
  return table;
}

Section DeviceSharesOf(const wan::v1::JobReport& report) {
  return {"Device Shares", "device_shares", {DeviceTable(report)}, {}};
}

}  // namespace wan::client::reports
