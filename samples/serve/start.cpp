#include "start.hpp"

#include <ctime>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace serve {

double since_start_ms()
{
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    // The program's name, in brackets, may contain any characters. Field 3 follows it; starttime is field 22 (proc(5)).
    std::istringstream fields(text.substr(text.rfind(')') == std::string::npos ? 0 : text.rfind(')') + 1));
    std::string skipped;
    for (int field = 3; field < 22; ++field) fields >> skipped;
    double ticks = 0;
    if (!(fields >> ticks)) throw std::runtime_error("cannot read /proc/self/stat, which says when this process began");
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    const double seconds = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
    return (seconds - ticks / static_cast<double>(::sysconf(_SC_CLK_TCK))) * 1e3;
}

} // namespace serve
