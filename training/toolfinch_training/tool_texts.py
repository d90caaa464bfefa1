"""Tool descriptions and requests of our own writing: for calibration and for golden files."""

from __future__ import annotations

import random
from dataclasses import dataclass

SEED = 20260


@dataclass(frozen=True)
class Domain:
    """What tools of one kind act on, and the arguments they take."""

    name: str
    objects: tuple[str, ...]
    arguments: tuple[str, ...]


DOMAINS = (
    Domain("calendar", ("event", "reminder", "meeting room"), ("start_time", "attendees", "title")),
    Domain("mail", ("email", "draft", "attachment"), ("recipient", "subject", "body_html")),
    Domain("payments", ("invoice", "refund", "card charge"), ("amount_cents", "currency", "iban")),
    Domain("maps", ("route", "place", "traffic report"), ("origin", "destination", "travelMode")),
    Domain("music", ("playlist", "song", "podcast episode"), ("artist", "trackId", "volume")),
    Domain("files", ("folder", "spreadsheet", "PDF document"), ("path", "encoding", "overwrite")),
    Domain("weather", ("forecast", "storm alert", "UV index"), ("latitude", "longitude", "units")),
    Domain("git", ("pull request", "branch", "commit"), ("repo", "base_ref", "commit_sha")),
    Domain(
        "database", ("SQL query", "table schema", "index"), ("connectionString", "limit", "sql")
    ),
    Domain("home", ("thermostat", "light", "door lock"), ("device_id", "target_temp", "roomName")),
    Domain(
        "travel", ("flight", "hotel stay", "train ticket"), ("depart_on", "passengers", "class")
    ),
    Domain(
        "health", ("step count", "prescription", "sleep log"), ("patientId", "dose_mg", "since")
    ),
    Domain("shop", ("order", "coupon", "shopping basket"), ("sku", "quantity", "delivery_address")),
    Domain("browser", ("tab", "screenshot", "web form"), ("url", "cssSelector", "timeout_ms")),
    Domain("chat", ("channel", "direct message", "emoji reaction"), ("channel_id", "text", "ts")),
    Domain("photos", ("album", "portrait", "thumbnail"), ("width", "height", "exifDate")),
    Domain("finance", ("stock quote", "exchange rate", "loan plan"), ("ticker", "rate", "months")),
    Domain("cloud", ("virtual machine", "storage bucket", "DNS record"), ("region", "ttl", "tags")),
    Domain("news", ("headline", "article", "press release"), ("topic", "language", "published_by")),
    Domain("language", ("translation", "summary", "grammar check"), ("source", "target", "tone")),
)

VERBS = ("create", "list", "update", "delete", "search", "share", "export", "cancel")

DESCRIPTIONS = (
    "{Verb} a {object} in {domain}. Takes {a} and optionally {b}.",
    "Use this tool to {verb} one {object}; fails if `{a}` is missing.",
    "{Verb}s the {object} identified by {a}, returning JSON with {b} and {c}.",
    "Batch operation: {verb} up to 100 {object}s at once (max. 5 MB per request).",
)

REQUESTS = (
    "Can you {verb} the {object} I talked about yesterday?",
    "please {verb} a {object} for Zoë at 9:30, and don't tell Bob",
    "I need to {verb} my {object} before Friday — what's the quickest way?",
    "{Verb} every {object} older than 30 days; keep the newest 2.",
    "Why did the last attempt to {verb} that {object} fail with error 429?",
)


def tool_texts() -> list[str]:
    """960 texts: tool names split into words with description and arguments, and requests."""
    source = random.Random(SEED)
    texts: list[str] = []
    for domain in DOMAINS:
        for verb in VERBS:
            for thing in domain.objects:
                words = {
                    "verb": verb,
                    "Verb": verb.capitalize(),
                    "object": thing,
                    "domain": domain.name,
                    "a": domain.arguments[0],
                    "b": domain.arguments[1],
                    "c": domain.arguments[2],
                }
                description = source.choice(DESCRIPTIONS).format(**words)
                arguments = " ".join(domain.arguments)
                texts.append(f"{domain.name} {verb} {thing}\n{description}\n{arguments}")
                texts.append(source.choice(REQUESTS).format(**words))
    return texts


def long_texts() -> list[str]:
    """20 texts of many sentences, some longer than 256 tokens."""
    source = random.Random(SEED + 1)
    texts = tool_texts()
    return [" ".join(source.sample(texts, 1 + index)) for index in range(20)]
