"""Small stores of other memories, with the tables and fields that their projects publish."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]

TABLES = {
    "continuum_memory": "id TEXT PRIMARY KEY, tier TEXT NOT NULL DEFAULT 'slow', content TEXT NOT NULL,"
    " importance REAL DEFAULT 0.5, surprise_score REAL DEFAULT 0.0, update_count INTEGER DEFAULT 0,"
    " semantic_centroid BLOB, created_at TEXT DEFAULT CURRENT_TIMESTAMP, updated_at TEXT DEFAULT CURRENT_TIMESTAMP,"
    " metadata TEXT DEFAULT '{}', expires_at TEXT, red_line INTEGER DEFAULT 0, red_line_reason TEXT DEFAULT ''",
    "continuum_memory_archive": "id TEXT PRIMARY KEY, tier TEXT NOT NULL, content TEXT NOT NULL, archive_reason TEXT",
    "memories": "id TEXT PRIMARY KEY, agent_name TEXT NOT NULL, memory_type TEXT NOT NULL, content TEXT NOT NULL,"
    " importance REAL DEFAULT 0.5, debate_id TEXT, metadata TEXT, created_at TEXT DEFAULT CURRENT_TIMESTAMP",
    "consensus": "id TEXT PRIMARY KEY, topic TEXT NOT NULL, topic_hash TEXT NOT NULL, conclusion TEXT NOT NULL,"
    " strength TEXT NOT NULL, confidence REAL, domain TEXT, tags TEXT, timestamp TEXT, data TEXT NOT NULL",
    "dissent": "id TEXT PRIMARY KEY, debate_id TEXT NOT NULL, agent_id TEXT NOT NULL, dissent_type TEXT NOT NULL,"
    " content TEXT NOT NULL, confidence REAL, timestamp TEXT, data TEXT NOT NULL",
    "working_memory": "id TEXT PRIMARY KEY, agent_id TEXT, label TEXT NOT NULL, content TEXT NOT NULL,"
    " max_tokens INTEGER DEFAULT 500, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP",
    "factual_memory": "id TEXT PRIMARY KEY, content TEXT NOT NULL, entity TEXT, category TEXT DEFAULT 'fact',"
    " embedding BLOB, source TEXT, confidence REAL DEFAULT 1.0, access_count INTEGER DEFAULT 0,"
    " created_at DATETIME DEFAULT CURRENT_TIMESTAMP, updated_at DATETIME DEFAULT CURRENT_TIMESTAMP,"
    " expires_at DATETIME, erased_at DATETIME",
    "entity_links": "id TEXT PRIMARY KEY, source_entity TEXT NOT NULL, target_entity TEXT NOT NULL,"
    " relationship TEXT NOT NULL, weight REAL DEFAULT 1.0",
    "experiential_memory": "id TEXT PRIMARY KEY, action_type TEXT NOT NULL, action_summary TEXT NOT NULL, outcome TEXT,"
    " outcome_score REAL, insight TEXT, context_tags TEXT, agent_role TEXT, model_used TEXT, cost_eur REAL,"
    " created_at DATETIME DEFAULT CURRENT_TIMESTAMP",
    "events": "offset INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, run_id TEXT NOT NULL,"
    " turn INTEGER NOT NULL, kind TEXT NOT NULL, actor TEXT NOT NULL, payload TEXT NOT NULL, created_at TEXT NOT NULL,"
    " schema_version INTEGER NOT NULL DEFAULT 1",
    "scratchpad": "session_id TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, updated_at TEXT NOT NULL,"
    " PRIMARY KEY (session_id, key)",
    "session_summaries": "id TEXT PRIMARY KEY, session_id TEXT NOT NULL, summary TEXT NOT NULL, metadata TEXT,"
    " created_at TEXT NOT NULL",
    "session_messages": "id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL,"
    " content TEXT NOT NULL, timestamp REAL, indexed_at TEXT NOT NULL",
    "store": "prefix text NOT NULL, key text NOT NULL, value text NOT NULL,"
    " created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,"
    " expires_at TIMESTAMP, ttl_minutes REAL, PRIMARY KEY (prefix, key)",
    "store_vectors": "prefix text NOT NULL, key text NOT NULL, field_name text NOT NULL, embedding BLOB,"
    " PRIMARY KEY (prefix, key, field_name)",
    "todos": "session_id TEXT NOT NULL PRIMARY KEY, data TEXT NOT NULL, updated_at TEXT NOT NULL",
}
"""The columns of tables by the name of the table."""


def write_tables(path: Path, tables: Mapping[str, Rows]) -> Path:
    """A database with these rows. Columns that a row does not name have their defaults."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
        for name, rows in tables.items():
            database.execute(f"CREATE TABLE IF NOT EXISTS {name} ({TABLES[name]})")
            for row in rows:
                marks = ", ".join("?" for _ in row)
                database.execute(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


AT = "2026-10-22 04:40:22"


def aragora(folder: Path) -> Path:
    data = {"participating_agents": ["critic", "judge"], "agreeing_agents": ["critic"], "rounds": 2, "tags": ["ops"]}
    entry = {
        "id": "e-1",
        "tier": "slow",
        "content": "Unbounded retries flood the queue.",
        "importance": 0.7,
        "created_at": AT,
        "metadata": '{"source": "debate", "stars": 5}',
    }
    write_tables(
        folder / "continuum.db",
        {
            "continuum_memory": [
                entry,
                {"id": "e-2", "tier": "fast", "content": "Never deploy on Friday.", "red_line": 1, "created_at": AT},
                {"id": "e-3", "tier": "urgent", "content": "A tier of no system.", "created_at": AT},
                {"id": "e-4", "content": "Long gone.", "created_at": AT, "expires_at": "2001-01-01T00:00:00"},
            ],
            "continuum_memory_archive": [{"id": "e-0", "tier": "slow", "content": "Old.", "archive_reason": "deleted"}],
        },
    )
    write_tables(
        folder / "consensus.db",
        {
            "consensus": [
                {
                    "id": "c-1",
                    "topic": "retry policy",
                    "topic_hash": "0",
                    "conclusion": "Three retries.",
                    "strength": "strong",
                    "confidence": 0.8,
                    "domain": "general",
                    "timestamp": "2026-10-22T04:40:22.5",
                    "data": json.dumps(data),
                }
            ],
            "dissent": [
                {
                    "id": "d-1",
                    "debate_id": "c-1",
                    "agent_id": "judge",
                    "dissent_type": "edge_case_concern",
                    "content": "Payments need more.",
                    "confidence": 0.6,
                    "timestamp": AT,
                    "data": json.dumps({"reasoning": "They are slow."}),
                }
            ],
            "memories": [
                {"id": "s-1", "agent_name": "judge", "memory_type": "insight", "content": "Critics repeat themselves."}
            ],
        },
    )
    return folder


def tramontane(folder: Path) -> Path:
    return write_tables(
        folder / "memory.db",
        {
            "factual_memory": [
                {
                    "id": "f-1",
                    "content": "Quill Ltd buys oak.",
                    "entity": "Quill Ltd",
                    "category": "preference",
                    "source": "notes",
                    "confidence": 0.9,
                    "created_at": AT,
                },
                {"id": "f-2", "content": "Quill Ltd pays late.", "entity": "", "created_at": AT, "erased_at": AT},
                {"id": "f-3", "content": "  ", "created_at": AT},
            ],
            "experiential_memory": [
                {
                    "id": "x-1",
                    "action_type": "offer",
                    "action_summary": "offered oak to Quill Ltd",
                    "outcome": "sold",
                    "outcome_score": 0.9,
                    "created_at": AT,
                }
            ],
            "working_memory": [{"id": "w-1", "agent_id": "gerald", "label": "Goals", "content": "Sell three tables"}],
            "entity_links": [
                {"id": "l-1", "source_entity": "Quill Ltd", "target_entity": "oak", "relationship": "buys"}
            ],
        },
    )


def genesis(folder: Path) -> Path:
    entries = [
        {
            "id": "m-1",
            "text": "LESSON: look at the balance before a purchase",
            "embedding": [0.0, 0.1],
            "metadata": {"preseeded": True},
            "created_at": "2026-10-22T04:40:22+00:00",
        },
        {"id": "m-2", "metadata": {}, "created_at": "2026-10-22T04:40:22Z"},
    ]
    artifacts = [
        {
            "id": "alpha_3_longterm",
            "type": "memory_store",
            "created_by": "alpha_3",
            "content": json.dumps({"entries": entries}),
        },
        {"id": "alpha_3_working_memory", "type": "memory", "content": json.dumps({"current_subgoal": "sell a tool"})},
        {"id": "beta_working_memory", "type": "memory", "content": "current_subgoal: dig\n"},
        {"id": "calculator", "type": "code", "content": "def run(): ..."},
    ]
    path = folder / "checkpoint.json"
    path.write_text(json.dumps({"tick": 9, "balances": {"alpha_3": {"scrip": 7}}, "artifacts": artifacts}))
    return path


def ledger_view(folder: Path) -> Path:
    rows = [
        ("evt-1", 1, "world.observed", "narrator", {"text": "The mill burned."}),
        ("evt-2", 2, "agent.thought", "baker", {"text": "It was the smith."}),
        ("evt-3", 3, "agent.reflected", "baker", {"belief": "The miller lies.", "based_on": ["evt-1"]}),
    ]
    events = [
        {
            "id": id_,
            "run_id": "village",
            "turn": turn,
            "kind": kind,
            "actor": actor,
            "payload": json.dumps(payload),
            "created_at": "2026-10-22T04:40:22+00:00",
        }
        for id_, turn, kind, actor, payload in rows
    ]
    events.append({**events[0], "id": "evt-4", "kind": "nodot"})
    events.append({**events[0], "id": "evt-5", "payload": "{"})
    return write_tables(folder / "run.db", {"events": events})


def agenticx(folder: Path) -> Path:
    (folder / "workspace" / "memory").mkdir(parents=True)
    (folder / "workspace" / "MEMORY.md").write_text("# What I know\nLea visits on Friday.\n")
    (folder / "workspace" / "memory" / "2026-11-02.md").write_text("- Done: the list.\n")
    (folder / "memory").mkdir()
    messages = [("user", "Where does Lea sleep?"), ("assistant", "In the attic.")]
    write_tables(
        folder / "memory" / "sessions.sqlite",
        {
            "scratchpad": [
                {"session_id": "s-1", "key": "plan", "value": "buy rye", "updated_at": AT},
                {"session_id": "s-1", "key": "subagent_result::7", "value": "found", "updated_at": AT},
            ],
            "session_summaries": [
                {"id": "y-1", "session_id": "s-1", "summary": "The list for the market is done.", "created_at": AT}
            ],
            "session_messages": [
                {"session_id": "s-1", "role": role, "content": text, "timestamp": 1.7e9 + n, "indexed_at": AT}
                for n, (role, text) in enumerate(messages)
            ],
            "todos": [{"session_id": "s-1", "data": "[]", "updated_at": AT}],
        },
    )
    return folder


def mem0(folder: Path) -> Path:
    answer = {
        "results": [
            {
                "id": "m-1",
                "memory": "Allergic to nuts",
                "user_id": "alex",
                "categories": ["health"],
                "metadata": {"stars": 5},
                "created_at": "2026-10-22T04:40:22-07:00",
                "expiration_date": None,
            },
            {"id": "m-2", "memory": "Lives in Oslo", "user_id": "bo", "created_at": "2026-10-22T04:40:22-07:00"},
            {"id": "m-3", "user_id": "bo"},
        ],
        "relations": [{"source": "bo", "relationship": "lives in", "destination": "oslo"}],
    }
    path = folder / "mem0.json"
    path.write_text(json.dumps(answer))
    return path


def letta(folder: Path) -> Path:
    messages = [
        {"id": "message-0", "role": "user", "content": [{"type": "text", "text": "Where do plums grow?"}]},
        {"id": "message-1", "role": "assistant", "content": [{"type": "text", "text": "Behind the mill."}]},
    ]
    agent = {"id": "agent-0", "name": "baker", "system": "You bake.", "messages": messages, "block_ids": ["block-0"]}
    blocks = [{"id": "block-0", "label": "human", "value": "Lea likes plums."}, {"id": "block-1", "label": "notes"}]
    path = folder / "baker.af"
    path.write_text(json.dumps({"agents": [agent], "blocks": blocks, "tools": [{"id": "tool-0", "name": "bake"}]}))
    return path


def langgraph(folder: Path) -> Path:
    rows = [("memories.ann", "m-1", '{"text": "allergic to nuts"}'), ("memories.ann", "m-2", "{")]
    return write_tables(
        folder / "store.db",
        {
            "store": [{"prefix": prefix, "key": key, "value": value} for prefix, key, value in rows],
            "store_vectors": [{"prefix": "memories.ann", "key": "m-1", "field_name": "text"}],
        },
    )
