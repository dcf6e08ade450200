"""Times a command as often as it is told to on standard input; answers with milliseconds as JSON."""

import json
import subprocess
import sys
import time

name, *command = sys.argv[1:]
for line in sys.stdin:
    times: list[float] = []
    for turn in range(int(line)):
        start = time.perf_counter()
        subprocess.run([*command, f"{name}{turn}"], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - start) * 1000)
    print(json.dumps(times), flush=True)
