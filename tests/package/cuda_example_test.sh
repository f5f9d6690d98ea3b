#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cuda_example_test.sh PROGRAM FILE: the example with a CUDA kernel of one's own. Without a GPU it must end with 6 and the
# reason, and the test counts as skipped.
set -uo pipefail
rm -f "$2"
said=$("$1" "--plumbline_out=$2" 2>&1)
code=$?
if [ "$code" = 6 ] && [ -n "$said" ] && [ ! -e /dev/nvidiactl ]; then
    echo "skipped: no GPU here; the program said: $said"
    exit 77
fi
echo "$said"
[ "$code" = 0 ] || { echo "FAULT: ended with $code"; exit 1; }
/usr/bin/python3 - "$2" <<'END'
import json, statistics, sys
document = json.load(open(sys.argv[1]))
assert document["device"]["backend"] == "cuda" and document["device"]["model"] and document["device"]["uuid"], document["device"]
rates = {}
for result in document["results"]:
    assert result["status"] == "ok" and result["verified"], result
    samples = result["sessions"][0]["samples"]
    rates[result["id"]] = result["workload"]["bytes"] / statistics.median(samples)  # bytes per ns: GB/s
print(rates)
assert rates["user/saxpy/n67108864"] > 500, "a GPU's memory is faster than that"
END
