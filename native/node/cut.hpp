// finch_cut as JavaScript's NativeCut.
#pragma once

#include <napi.h>

#include "toolfinch.h"

namespace finch::node {

Napi::Value cut_object(Napi::Env env, const finch_cut& cut);

}  // namespace finch::node
