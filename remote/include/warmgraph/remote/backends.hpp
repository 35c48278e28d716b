// The stores that can be a remote tier. Each is a store::Tier over names as text (store::to_text) with the namespace before
// them, and does nothing else: RemoteTier (remote_tier.hpp) around it stops asking a dead store, counts, signs, verifies,
// and remembers what it refused.
//
// Every backend passes the tests of every tier (tests/store/tier_conformance_test.cpp), and keeps to more rules:
// - It connects at its first call and again after a failure, within connect_timeout. It follows no redirect to another host.
// - It gives up within header_timeout, or payload_timeout where more than 64 KiB are wanted or given, or ReadLimit::within,
//   whichever ends first.
// - It takes no more memory than what was asked for, whatever sizes the store states. `whole` and a larger object: corrupt.
// - Its errors: io_failed (not reached, too slow, a broken answer, 5xx), permission_denied (a wrong password, 401, 403),
//   no_space (507, OOM of Redis), unsupported (the store cannot do this, e.g. a range), corrupt (an answer that is not what
//   the protocol says, e.g. another length than announced: nothing of it is used).
// - Messages name settings.label, and no secret.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "warmgraph/base/error.hpp"
#include "warmgraph/remote/settings.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::remote {

class Backend : public store::Tier {
public:
    /// Does nothing: reading removes nothing from a store that others use.
    void refuse(const store::Name&, const store::Stamp&, const Error&) noexcept final {}
};

/// http, https and s3, through libcurl, which is opened at run time. unsupported: there is no libcurl, or it was left out
/// of this build; the message says how to get it.
[[nodiscard]] Result<std::unique_ptr<store::Tier>> http_backend(const Settings& settings);
/// redis, rediss and redis_socket, by a client of our own; rediss opens libssl at run time.
[[nodiscard]] Result<std::unique_ptr<store::Tier>> redis_backend(const Settings& settings);
/// A cache folder, e.g. on a file server.
[[nodiscard]] Result<std::unique_ptr<store::Tier>> file_backend(const Settings& settings);

/// How far the store's clock is ahead of this machine's, to about a second. nullopt: it tells no time. Errors as those of a
/// backend's calls.
[[nodiscard]] Result<std::optional<std::chrono::seconds>> clock_ahead(const Settings& settings);

/// The backend of the settings' scheme. Connects to nothing.
[[nodiscard]] Result<std::unique_ptr<store::Tier>> backend_of(const Settings& settings);

} // namespace warmgraph::remote
