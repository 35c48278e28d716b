// Runs code in a forked child. The child ends by _exit(), so that it runs none of the parent's destructors.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace warmgraph::test {

class ChildProcess {
public:
    /// Starts a child that runs `body`. The result of `body` is the child's exit status.
    template <class Body>
    explicit ChildProcess(Body body) : m_pid(::fork())
    {
        if (m_pid < 0) throw std::runtime_error("fork failed");
        if (m_pid != 0) return;
        int status = 99;
        try {
            status = body();
        } catch (...) {
        }
        ::_exit(status);
    }
    ChildProcess(ChildProcess&& other) noexcept : m_pid(std::exchange(other.m_pid, -1)) {}
    ChildProcess& operator=(ChildProcess&&) = delete;
    ~ChildProcess()
    {
        if (m_pid > 0) static_cast<void>(wait());
    }
    [[nodiscard]] pid_t pid() const noexcept { return m_pid; }
    /// Waits for the child. Returns its exit status, or 1000 + the number of the signal that ended it.
    [[nodiscard]] int wait()
    {
        int status = 0;
        while (::waitpid(m_pid, &status, 0) < 0 && errno == EINTR) {}
        m_pid = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    }

private:
    pid_t m_pid;
};

/// A pipe that carries single bytes between parent and child, e.g. so that a child waits for the parent.
class Gate {
public:
    Gate()
    {
        if (::pipe(m_ends) != 0) throw std::runtime_error("pipe failed");
    }
    Gate(const Gate&) = delete;
    Gate& operator=(const Gate&) = delete;
    ~Gate()
    {
        ::close(m_ends[0]);
        ::close(m_ends[1]);
    }
    void open() const
    {
        if (::write(m_ends[1], "x", 1) != 1) throw std::runtime_error("write to a pipe failed");
    }
    void wait() const
    {
        char byte = 0;
        if (::read(m_ends[0], &byte, 1) != 1) throw std::runtime_error("read from a pipe failed");
    }

private:
    int m_ends[2] = {-1, -1};
};

} // namespace warmgraph::test
