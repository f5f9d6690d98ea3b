#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the 25-line program must have written: check_baseline.py FILE SCHEMA."""
import json
import math
import statistics
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    document = json.load(file)
results = {result["id"]: result for result in document["results"]}
assert set(results) == {"user/gelu/n8192", "user/gelu/n32768"}, set(results)
medians = {}
for name, result in results.items():
    samples = result["sessions"][0]["samples"]
    assert result["status"] == "ok" and result["backend"] == "cpu" and result["unit"] == "ns", result
    assert len(samples) >= 30 and all(math.isfinite(value) and value > 0 for value in samples), samples
    medians[name] = statistics.median(samples)
ratio = medians["user/gelu/n32768"] / medians["user/gelu/n8192"]
assert 2 < ratio < 8, f"four times the work took {ratio:.2f} times as long"
attributes = document["fingerprint"]["provenance"]["fields"]
assert "build.google_benchmark" in attributes, sorted(attributes)
assert document["fingerprint"]["comparability"]["hash"] and document["device"]["model"], document["device"]
try:
    import jsonschema
except ImportError:
    print("the schema is not checked: no python3-jsonschema")
else:
    with open(sys.argv[2], encoding="utf-8") as file:
        jsonschema.validate(document, json.load(file))
print("ok")
