"""The language model's queries, against a server that plays the endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from toolfinch_training.index_text import Tool
from toolfinch_training.llm_queries import (
    Dropped,
    Endpoint,
    EndpointError,
    generate,
    jaccard,
    parse_queries,
    parse_score,
    word_set,
)

GOOD = "Will it rain in Oslo on Saturday afternoon?"
NEAR = "Will it rain in Oslo on Saturday afternoon please?"
OTHER = "What is the capital of the country with most sheep?"
ANSWERS = ["Rain?", GOOD, NEAR, OTHER, "word " * 121]


class FakeEndpoint(ThreadingHTTPServer):
    """Answers requests to write with ANSWERS, to judge by whether the query is about rain."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[dict[str, Any], str | None]] = []
        self.failures: list[int] = []
        self.raw: bytes | None = None


class Handler(BaseHTTPRequestHandler):
    server: FakeEndpoint

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = json.loads(self.rfile.read(length))
        self.server.requests.append((body, self.headers.get("authorization")))
        if self.server.failures:
            self.send_response(self.server.failures.pop(0))
            self.send_header("content-length", "0")
            self.end_headers()
            return
        prompt = body["messages"][0]["content"]
        if "Request:" in prompt:
            text = "0.95" if "rain" in prompt.split("Tool:")[0] else "Score: 0.4"
        else:
            text = f"Here you are:\n```json\n{json.dumps(ANSWERS)}\n```"
        reply = (
            self.server.raw or json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        )
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[FakeEndpoint]:
    server = FakeEndpoint()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def endpoint(server: FakeEndpoint, *, key: str | None = None, retries: int = 4) -> Endpoint:
    url = f"http://127.0.0.1:{server.server_address[1]}/v1/"
    return Endpoint(url, "fake", key=key, retries=retries, pause=0.01)


TOOL = Tool("w/forecast", "forecast", "Weather forecast for a place.", "w", ("place",))


def test_only_what_passes_every_filter_is_kept(server: FakeEndpoint) -> None:
    dropped = Dropped()
    kept = list(generate(endpoint(server, key="k"), [TOOL], per_tool=5, seed=1, dropped=dropped))
    assert kept == [(GOOD, "w/forecast")]
    assert (dropped.length, dropped.duplicate, dropped.match) == (2, 1, 1)
    assert {key for _, key in server.requests} == {"Bearer k"}
    assert "Weather forecast" in server.requests[0][0]["messages"][0]["content"]


def test_near_duplicates_are_found_across_tools(server: FakeEndpoint) -> None:
    dropped = Dropped()
    tools = [TOOL, Tool("v/forecast", "forecast", "Weather elsewhere.", "v", ())]
    kept = list(generate(endpoint(server), tools, per_tool=5, seed=1, dropped=dropped))
    assert [tool for _, tool in kept] == ["w/forecast"]


def test_a_busy_endpoint_is_asked_again(server: FakeEndpoint) -> None:
    server.failures = [429, 503]
    assert "Here you are" in endpoint(server).ask("write", temperature=0.0, seed=1)
    assert len(server.requests) == 3


def test_errors_say_what_was_answered(server: FakeEndpoint) -> None:
    server.failures = [401]
    with pytest.raises(EndpointError, match="401"):
        endpoint(server).ask("write", temperature=0.0, seed=1)
    server.failures = [503] * 2
    with pytest.raises(EndpointError, match="503"):
        endpoint(server, retries=1).ask("write", temperature=0.0, seed=1)
    server.raw = b"<html>"
    with pytest.raises(EndpointError, match="not a chat completion"):
        endpoint(server).ask("write", temperature=0.0, seed=1)


def test_lists_that_are_no_json_are_read() -> None:
    assert parse_queries('Sure!\n1. "Find a cat"\n2) Pet it\n- Feed it') == [
        "Find a cat",
        "Pet it",
        "Feed it",
    ]
    assert parse_queries("I cannot help with that.") == []
    assert parse_queries('[1, "two"]') == ["two"]


@pytest.mark.parametrize(
    ("answer", "score"),
    [("0.9", 0.9), ("Score: 1", 1.0), ("1.0", 1.0), (".5", 0.5), ("7", 0.0), ("none", 0.0)],
)
def test_scores(answer: str, score: float) -> None:
    assert parse_score(answer) == score


def test_jaccard_by_hand() -> None:
    assert jaccard(word_set("a b c"), word_set("B c d")) == pytest.approx(0.5)
    assert jaccard(word_set(""), word_set("")) == 1
