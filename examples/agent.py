"""An agent that has code run where it can do no harm, reads what came of it, and tries again.

COFFERDAM_URL and COFFERDAM_API_KEY say where and as whom. Nothing but the standard library is needed.
"""
import json, os, urllib.request

def run(code, **more):
    """Runs Python code in a fresh sandbox, and returns the job when it has ended."""
    url = os.environ.get("COFFERDAM_URL", "http://127.0.0.1:8080") + "/v1/jobs?wait_ms=60000"
    headers = {"X-API-Key": os.environ["COFFERDAM_API_KEY"], "Content-Type": "application/json"}
    body = json.dumps({"language": "python", "code": code, **more}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return json.load(answer)

# What a model would have written, with a mistake at first; it is shown what went wrong, and writes better.
for attempt in ["print(sum(numbers))", "print(sum(int(line) for line in open('numbers.txt')))"]:
    job = run(attempt, files=[{"path": "numbers.txt", "content": "20\n22\n"}], timeout_ms=10_000)
    if job["status"]["state"] == "succeeded":
        print("The answer is", job["result"]["stdout"].strip())
        break
    print("It did not work:", (job["result"]["stderr"].strip().splitlines() or [job["status"]["message"]])[-1])
