// What the synchronous and the queued search share.
#pragma once

#include <cstddef>

#include "toolfinch.h"

namespace finch {

// Options read, defaulted and checked against the snapshot. Sets the message on failure.
finch_status read_search_options(const finch_snapshot* snapshot, const finch_search_options* options,
                                 finch_search_options* out) noexcept;

// The message for a query that to_unit() refused.
finch_status refuse_query(finch_status status, const char* what, size_t i) noexcept;

}  // namespace finch
