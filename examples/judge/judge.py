"""Judges a change of a CRD: python3 judge.py PUSHBACK OLD.json NEW.json"""
import json
import subprocess
import sys

program, old, new = sys.argv[1:]
judge = subprocess.Popen([program, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
request = {"apiVersion": "pushback.dev/v1alpha1", "kind": "JudgeRequest"}
request |= {"old": json.load(open(old)), "new": json.load(open(new))}
print(json.dumps(request), file=judge.stdin, flush=True)
response = json.loads(judge.stdout.readline())
print(response["verdict"])
for change in response["changes"]:
    print(change.get("path", ""), change["check"])
judge.stdin.close()
