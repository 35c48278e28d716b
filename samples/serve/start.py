"""The start time of this process."""
import os
import time

_STARTTIME = 22  # the field of /proc/self/stat, proc(5): clock ticks after boot, which are 10 ms


def since_start_ms() -> float:
    """Milliseconds since the process was started, in steps of 10 ms."""
    with open("/proc/self/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()  # a program's name may contain any characters
    began = int(fields[_STARTTIME - 3]) / os.sysconf("SC_CLK_TCK")
    return (time.clock_gettime(time.CLOCK_BOOTTIME) - began) * 1e3
