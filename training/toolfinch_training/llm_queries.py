"""Queries for tools from a language model behind any OpenAI-compatible endpoint.

For those who have one; nothing that ships depends on it. What the model writes passes EcoAgent's
filters: 5 to 120 words, near-duplicates (Jaccard similarity of word sets above 0.7 to a query that
is kept) dropped, and a functional match: the model itself, asked to judge query and tool, must
give at least 0.85.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolfinch_training.index_text import Tool, index_text

LEAST_WORDS = 5
MOST_WORDS = 120
NEAR_DUPLICATE = 0.7
LEAST_MATCH = 0.85
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?<![\d.])(?:1(?:\.0+)?|0?\.\d+|0)(?![\d.])")
_RETRIED = (408, 429, 500, 502, 503, 504)

_WRITE = (
    "Write {count} requests that a user could send to an assistant and that this tool answers. "
    "Vary length, wording and detail; make values up; do not name the tool. "
    "Answer with a JSON array of strings and nothing else.\n\nTool: {tool}"
)
_JUDGE = (
    "How well does the tool do what the request asks for? Answer with one number from 0 (not at "
    "all) to 1 (exactly) and nothing else.\n\nRequest: {query}\n\nTool: {tool}"
)


class EndpointError(RuntimeError):
    """The endpoint did not give a usable answer."""


@dataclass(frozen=True)
class Endpoint:
    """A chat-completions endpoint: `url` ends before /chat/completions."""

    url: str
    model: str
    key: str | None = None
    timeout: float = 120.0
    retries: int = 4
    pause: float = 2.0

    def ask(self, prompt: str, *, temperature: float, seed: int) -> str:
        """The text of one answer; waits and tries again where the endpoint is busy."""
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": temperature,
            "seed": seed,
        }
        headers = {"content-type": "application/json"}
        if self.key:
            headers["authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(
            f"{self.url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers
        )
        for attempt in range(self.retries + 1):
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    return _content(response.read())
            except urllib.error.HTTPError as error:
                if error.code not in _RETRIED or attempt == self.retries:
                    raise EndpointError(f"{self.url} answered {error.code}") from error
            except (urllib.error.URLError, TimeoutError) as error:
                if attempt == self.retries:
                    raise EndpointError(f"{self.url} cannot be reached: {error}") from error
            time.sleep(self.pause * 2**attempt)
        raise AssertionError("unreachable")


@dataclass
class Dropped:
    """How many answers each filter dropped."""

    length: int = 0
    duplicate: int = 0
    match: int = 0
    unreadable: int = 0


def generate(
    endpoint: Endpoint, tools: Iterable[Tool], *, per_tool: int, seed: int, dropped: Dropped
) -> Iterator[tuple[str, str]]:
    """(query, tool id) that pass every filter, tool after tool."""
    kept: list[frozenset[str]] = []
    for number, tool in enumerate(tools):
        text = index_text(tool)
        answer = endpoint.ask(
            _WRITE.format(count=per_tool, tool=text), temperature=1.0, seed=seed + number
        )
        queries = parse_queries(answer)
        if not queries:
            dropped.unreadable += 1
        for query in queries[:per_tool]:
            if not LEAST_WORDS <= len(query.split()) <= MOST_WORDS:
                dropped.length += 1
                continue
            words = word_set(query)
            if any(jaccard(words, other) > NEAR_DUPLICATE for other in kept):
                dropped.duplicate += 1
                continue
            judged = endpoint.ask(_JUDGE.format(query=query, tool=text), temperature=0.0, seed=seed)
            if parse_score(judged) < LEAST_MATCH:
                dropped.match += 1
                continue
            kept.append(words)
            yield query, tool.id


def parse_queries(answer: str) -> list[str]:
    """The strings of the first JSON array in an answer; a list line by line is read as well."""
    start, end = answer.find("["), answer.rfind("]")
    if 0 <= start < end:
        try:
            values: Any = json.loads(answer[start : end + 1])
        except json.JSONDecodeError:
            values = None
        if isinstance(values, list):
            return [" ".join(value.split()) for value in values if isinstance(value, str)]
    lines = [re.sub(r"^\s*(?:\d+[.)]|[-*])\s+", "", line) for line in answer.splitlines()]
    return [
        " ".join(line.strip("\"'").split())
        for line, raw in zip(lines, answer.splitlines(), strict=True)
        if line != raw and line.strip()
    ]


def parse_score(answer: str) -> float:
    """The first number from 0 to 1; 0 where there is none."""
    match = _NUMBER.search(answer)
    return float(match.group()) if match else 0.0


def word_set(text: str) -> frozenset[str]:
    """The words of a text in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """|A and B| / |A or B|; 1 for two empty sets."""
    union = first | second
    return len(first & second) / len(union) if union else 1.0


def _content(body: bytes) -> str:
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (json.JSONDecodeError, KeyError, IndexError, TypeError) as error:
        raise EndpointError(f"not a chat completion: {body[:200]!r}") from error
    if not isinstance(content, str):
        raise EndpointError("the answer's content is not text")
    return content
