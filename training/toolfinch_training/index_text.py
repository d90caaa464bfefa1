"""The text of a tool that is embedded: the product's default recipe, `lib/catalog/index-text.ts`.

A model is trained on the same text that the product will show it: the name in words, the
description, `Arguments: ...` and `Group: ...` as short sentences of at most 1,000 characters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import regex

MAX_CHARACTERS = 1000
MAX_ARGUMENTS = 64
_SIDE_SHARE = 0.35
_SEPARATORS = 13

_UPPER = r"[\p{Lu}\p{Lt}]"
_LOWER = r"[\p{Ll}\p{Lo}\p{Lm}\p{M}]"
_WORD = regex.compile(
    "|".join(
        [
            rf"{_UPPER}{{2,}}s(?!{_LOWER})\p{{Nd}}*",
            rf"{_UPPER}+(?!{_LOWER})\p{{Nd}}*",
            rf"{_UPPER}?{_LOWER}+\p{{Nd}}*(?:(?<=\p{{Nd}}){_LOWER}{{1,2}}(?!{_LOWER}))?",
            rf"\p{{Nd}}+(?:{_LOWER}{{1,2}}(?!{_LOWER}))?",
        ]
    )
)
_BRANDS = frozenset(
    [
        "airbnb",
        "airtable",
        "bitbucket",
        "chatgpt",
        "clickup",
        "clickhouse",
        "cloudflare",
        "coingecko",
        "deepl",
        "devops",
        "docusign",
        "doordash",
        "dropbox",
        "duckduckgo",
        "ebay",
        "elasticsearch",
        "facebook",
        "figma",
        "github",
        "gitlab",
        "graphql",
        "hubspot",
        "instagram",
        "ios",
        "ipad",
        "iphone",
        "javascript",
        "latex",
        "linkedin",
        "macos",
        "mailchimp",
        "mongodb",
        "mysql",
        "noaa",
        "nodejs",
        "oauth",
        "openai",
        "openapi",
        "openweather",
        "paypal",
        "pinterest",
        "postgresql",
        "powerpoint",
        "powershell",
        "pubmed",
        "quickbooks",
        "sendgrid",
        "servicenow",
        "sharepoint",
        "shopify",
        "soundcloud",
        "sqlite",
        "stackoverflow",
        "techcrunch",
        "tiktok",
        "tripadvisor",
        "typescript",
        "webhook",
        "webrtc",
        "whatsapp",
        "wikidata",
        "wikipedia",
        "woocommerce",
        "wordpress",
        "youtube",
        "zoominfo",
    ]
)
_INVISIBLE = regex.compile(
    r"[\p{Cs}\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)
_SPACE = regex.compile(r"[\s\p{Cc}\p{Z}]+")
_HOST_NAME = regex.compile(r"^mcp__(.+?)__(.+)$", regex.DOTALL)
_SENTENCE_END = (".", "!", "?", "。", "！", "？")


@dataclass(frozen=True)
class Tool:
    """What is read of a tool. `group` is its server, application or API."""

    id: str
    name: str
    description: str
    group: str
    arguments: tuple[str, ...]
    tags: tuple[str, ...] = ()


def tool_of(row: dict[str, Any]) -> Tool:
    """A tool from a row of `tools.jsonl`."""
    parameters = row.get("parameters")
    return Tool(
        id=str(row["id"]),
        name=str(row["name"]),
        description=str(row.get("description") or ""),
        group=str(row.get("source") or ""),
        arguments=tuple(parameters) if isinstance(parameters, dict) else (),
        tags=tuple(str(tag) for tag in row.get("tags") or ()),
    )


def split_words(text: str) -> list[str]:
    """The words of a name in lower case: getHTTPResponse is get, http, response."""
    words: list[str] = []
    end = -1
    for match in _WORD.finditer(text):
        piece = match.group().lower()
        joined = words[-1] + piece if words else piece
        if words and match.start() == end and joined.rstrip("0123456789") in _BRANDS:
            words[-1] = joined
        else:
            words.append(piece)
        end = match.end()
    return words


def index_text(tool: Tool) -> str:
    """The text the product embeds for a tool, with default options."""
    match = _HOST_NAME.match(tool.name)
    leaf = match.group(2) if match else tool.name
    group = tool.group or (match.group(1) if match else "")
    side = int(MAX_CHARACTERS * _SIDE_SHARE)
    room = MAX_CHARACTERS
    arguments = dict.fromkeys(
        words
        for name in tool.arguments[:MAX_ARGUMENTS]
        if (words := " ".join(split_words(name[:256])))
    )
    parts = {
        "name": " ".join(split_words(leaf)),
        "parameters": ", ".join(arguments),
        "group": " ".join(split_words(_clean(group))),
    }
    for part, text in parts.items():
        parts[part] = _cut(text, min(side, max(0, room - _SEPARATORS)))
        if parts[part]:
            room -= len(parts[part]) + _SEPARATORS
    description = _cut(_clean(tool.description), max(0, room - _SEPARATORS))
    labelled = (
        ("", parts["name"]),
        ("", description),
        ("Arguments: ", parts["parameters"]),
        ("Group: ", parts["group"]),
    )
    pieces = [label + _ended(text) for label, text in labelled if text]
    return _cut(" ".join(pieces) or _clean(tool.name), MAX_CHARACTERS)


def _clean(text: str) -> str:
    bounded = text[: MAX_CHARACTERS * 8]
    cleaned: str = _SPACE.sub(" ", _INVISIBLE.sub("", bounded))
    return cleaned.strip()


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[:limit]
    if text[limit].isspace():
        return kept.rstrip()
    space = kept.rfind(" ")
    return (kept[:space] if space >= limit * 0.75 else kept).rstrip(" ,\t\n")


def _ended(text: str) -> str:
    return text if text.endswith(_SENTENCE_END) else f"{text}."
