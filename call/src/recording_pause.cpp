#include "warmgraph/call/recording_pause.hpp"

namespace warmgraph {

bool is_for_unkept_code(const Error& error) noexcept
{
    return error.code == ErrorCode::not_recordable && error.message.contains(backends::k_loaded_in_pause);
}

void note_unkept_code(store::LocalStore& store, const cachefmt::FunctionKey& function) noexcept
{
    store::FunctionUsage usage;
    usage.code_missed = 1;
    store.add_usage(function, usage);
}

bool keeps_code_for(store::LocalStore& store, const cachefmt::FunctionKey& function) noexcept
{
    const store::FunctionUsage so_far = store.usage(function);
    if (so_far.code_missed <= so_far.code_kept) return false;
    store::FunctionUsage usage;
    usage.code_kept = so_far.code_missed - so_far.code_kept;
    store.add_usage(function, usage);
    return true;
}

} // namespace warmgraph
