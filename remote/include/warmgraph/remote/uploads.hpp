// Sends what a process made to its remotes, behind its calls.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "warmgraph/remote/remote_tier.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph::remote {

/// Each object is marked in the folder as unsent when it is put there, sent on a thread of its own in the order of the puts
/// (so images come before the entries that name them), and unmarked. What is not sent when the process ends is sent by a
/// later one. Tombstones stay local. A profile is joined with the one that the remote has. Thread-safe; a launch never waits
/// for it. `store` and the remotes must outlive this object, and the store must have no other listener. Does nothing in a
/// forked child.
class Uploads {
public:
    /// `deadline`: how long the destructor and the exit of the process wait for what is not sent yet.
    Uploads(store::LocalStore& store, std::vector<std::shared_ptr<RemoteTier>> remotes,
            std::chrono::milliseconds deadline);
    Uploads(const Uploads&) = delete;
    Uploads& operator=(const Uploads&) = delete;
    ~Uploads();

    /// Also sends what earlier processes left in the folder.
    void resume() noexcept;
    /// Waits until everything is sent or has failed, at most so long. Returns the number of objects that are not sent.
    std::size_t wait(std::chrono::milliseconds most);

private:
    struct State;
    std::shared_ptr<State> m_state;
};

/// The name by which the folder knows a remote: its label and its namespace.
[[nodiscard]] std::string mark_name(const Settings& settings);

/// Sends one object of the folder to a remote. Returns false if there was nothing to send: the object is gone, or is a
/// tombstone.
[[nodiscard]] Result<bool> send(store::LocalStore& store, RemoteTier& remote, const store::Name& name);

} // namespace warmgraph::remote
