"""Mem0's own Python client against `ragpilot serve --memory-dir`: add, search, get_all, update, history, delete."""

import os
import sys

os.environ["MEM0_TELEMETRY"] = "False"

from mem0 import MemoryClient  # noqa: E402
from mem0.exceptions import MemoryNotFoundError, ValidationError  # noqa: E402


def expect(what, got, want):
    if got != want:
        sys.exit(f"{what}: got {got!r}, want {want!r}")
    print(f"ok {what}")


def refused(what, error, call):
    try:
        call()
    except error:
        print(f"ok {what}")
    else:
        sys.exit(f"{what}: not refused")


def texts(found):
    return [m["memory"] for m in found["results"]]


client = MemoryClient(api_key=sys.argv[2], host=sys.argv[1])
ana = {"user_id": "ana"}

added = client.add("Ana keeps bees.", user_id="ana", metadata={"topic": "life"}, infer=False)
expect("add", [(r["event"], r["memory"]) for r in added["results"]], [("ADD", "Ana keeps bees.")])
bees = added["results"][0]["id"]
more = client.add(
    [{"role": "user", "content": "Ana lives in Porto."}, {"role": "assistant", "content": "Porto is by the sea."}],
    filters=ana,
    expiration_date="2999-12-31",
    infer=False,
)
expect("add messages", len(more["results"]), 2)
talk = [{"role": "user", "content": "Hi! Cara keeps goats. What do I keep?"}, {"role": "assistant", "content": "Cara keeps goats."}]
expect("add statements", [r["memory"] for r in client.add(talk, user_id="cara")["results"]], ["Cara keeps goats."])
expect("add a question", client.add("What does Cara keep?", user_id="cara")["results"], [])
client.delete_all(user_id="cara")
expect("add what is known", client.add("Ana keeps bees.", user_id="ana")["results"], [])
client.add("Ben keeps a parrot.", user_id="ben")

found = client.search("who keeps bees?", filters=ana, top_k=1)
expect("search", texts(found), ["Ana keeps bees."])
expect("search by metadata", texts(client.search("Ana", filters={"AND": [ana, {"topic": "life"}]})), ["Ana keeps bees."])
everything = client.get_all(filters=ana)
expect("get_all", (everything["count"], sorted(texts(everything))), (3, ["Ana keeps bees.", "Ana lives in Porto.", "Porto is by the sea."]))
page = client.get_all(filters=ana, page=2, page_size=2)
expect("get_all by page", (page["count"], len(page["results"]), page["next"]), (3, 1, None))
expect("get", client.get(bees)["metadata"], {"topic": "life"})

expect("update", client.update(bees, text="Ana sold her bees.")["memory"], "Ana sold her bees.")
history = client.history(bees)
expect("history", [(h["event"], h["old_memory"], h["new_memory"]) for h in history], [("ADD", None, "Ana keeps bees."), ("UPDATE", "Ana keeps bees.", "Ana sold her bees.")])
client.batch_update([{"memory_id": bees, "metadata": {"topic": "past"}}])
expect("batch_update", client.get(bees)["metadata"], {"topic": "past"})
expect("users", sorted(u["name"] for u in client.users()["results"]), ["ana", "ben"])

client.delete(bees)
refused("get what was deleted", MemoryNotFoundError, lambda: client.get(bees))
client.batch_delete([{"memory_id": more["results"][0]["id"]}])
expect("batch_delete", texts(client.get_all(filters=ana)), ["Porto is by the sea."])
client.delete_all(user_id="ana")
expect("delete_all", client.get_all(filters=ana)["count"], 0)
expect("of others", texts(client.get_all(filters={"user_id": "ben"})), ["Ben keeps a parrot."])
client.delete_users(user_id="ben")
expect("delete_users", client.get_all(filters={"user_id": "ben"})["count"], 0)
for what, call in {
    "feedback": lambda: client.feedback(bees, feedback="POSITIVE"),
    "create_memory_export": lambda: client.create_memory_export(schema="{}", user_id="ana"),
    "get_memory_export": lambda: client.get_memory_export(user_id="ana"),
    "get_summary": lambda: client.get_summary(filters=ana),
}.items():
    try:
        call()
    except Exception as error:
        expect(f"{what} is not offered", "not offered" in str(error) or str(error), True)
    else:
        sys.exit(f"{what}: not refused")
for method, path in [("GET", "/v1/webhooks/"), ("POST", "/v1/webhooks/projects/p/"), ("POST", "/v1/entities/"), ("PUT", "/v1/feedback"), ("GET", "/mem0/v1/exports/x/")]:
    answer = client.client.request(method, path)
    expect(f"{method} {path}", (answer.status_code, "not offered" in answer.json()["detail"]), (501, True))
refused("no scope", ValidationError, lambda: client.search("x", filters={"topic": "life"}))
