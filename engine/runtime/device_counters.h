// What is counted of one device.
#pragma once

#include <memory>

#include "engine/api/exchange_meter.h"
#include "engine/api/held_bytes.h"

namespace wan {

// Null: nobody asks.
struct DeviceCounters {
  std::shared_ptr<HeldBytes> weights;        // what weights hold of a GPU's memory
  std::shared_ptr<ExchangeMeter> exchanges;  // what it exchanges with the others of its group
};

}  // namespace wan
