# ruff: noqa: E501
"""Texts with secrets, addresses and numbers, and texts that look alike: what a scrubber must find, and what it must not.

The values are made here from a seed, so that no file of this repository has anything that looks like a key.
"""

import random
import string
from dataclasses import dataclass

_LETTERS = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, and what has to be replaced in it: (sort, value), each once."""

    text: str
    values: tuple[tuple[str, str], ...] = ()


def labelled() -> list[Labelled]:
    """The set. Each call gives the same one."""
    return [*_with_values(random.Random(7)), *map(Labelled, _look_alikes(random.Random(11)))]


def _with_values(chance: random.Random) -> list[Labelled]:
    values = [
        *(("secrets", each) for each in _secrets(chance)),
        *(("emails", each) for each in _EMAILS),
        *(("phones", each) for each in _PHONES),
        *(("cards", each) for each in _CARDS),
    ]
    framed = (
        (_FRAMES[sort][(number + step) % len(_FRAMES[sort])], sort, value)
        for number, (sort, value) in enumerate(values)
        for step in (0, 1)
    )
    return [Labelled(frame.format(value), ((sort, value),)) for frame, sort, value in framed]


def _of(chance: random.Random, length: int, letters: str = _LETTERS) -> str:
    """A random text that has a digit and a letter."""
    return "a7" + "".join(chance.choice(letters) for _ in range(length - 2))


def _secrets(chance: random.Random) -> list[str]:
    def of(length: int, letters: str = _LETTERS) -> str:
        return _of(chance, length, letters)

    upper = string.ascii_uppercase + "234567"
    body = "\n".join(of(64, _LETTERS + "+/") for _ in range(4))
    return [
        "AKIA" + "Q7" + "".join(chance.choice(upper) for _ in range(14)).replace("8", "2"),
        "ASIA" + "Z3" + "".join(chance.choice(upper) for _ in range(14)),
        "ghp_" + of(36),
        "gho_" + of(36),
        "ghs_" + of(36),
        "github_pat_" + of(22) + "_" + of(59),
        "glpat-" + of(20),
        "sk-proj-" + of(80, _LETTERS + "_-"),
        "sk-" + of(48),
        "sk-svcacct-" + of(70),
        "sk-ant-api03-" + of(93, _LETTERS + "_-"),
        "sk-or-v1-" + of(64, _HEX),
        "xoxb-" + "123456789012-1234567890123-" + of(24),
        "xoxp-" + "123456789012-123456789012-123456789012-" + of(32, _HEX),
        "xapp-1-" + "A012345678-1234567890123-" + of(64, _HEX),
        "AIza" + of(35, _LETTERS + "_"),
        "ya29." + of(60, _LETTERS + "_-"),
        "GOCSPX-" + of(28),
        "sk_live_" + of(24),
        "rk_test_" + of(30),
        "whsec_" + of(32),
        "eyJhbGciOiJIUzI1NiJ9.eyJ" + of(40) + "." + of(43, _LETTERS + "_-"),
        "npm_" + of(36),
        "pypi-" + "AgEIcHlwaS5vcmc" + of(60),
        "hf_" + "".join(chance.choice(string.ascii_letters) for _ in range(34)),
        "SG." + of(22) + "." + of(43),
        "dop_v1_" + of(64, _HEX),
        "shpat_" + of(32, _HEX),
        "gsk_" + of(52),
        "hvs." + of(90),
        "123456789:AA" + of(33),
        f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}\n-----END OPENSSH PRIVATE KEY-----",
    ]


_EMAILS = [
    "alice@example.com", "bob.smith+news@mail.example.co.uk", "j_doe99@sub.domain.org", "neil@example.com",
    "张伟@example.cn", "marie-claire@boulangerie.fr", "info@163.com", "a.b.c.d@x.io", "SALES@ACME.COM",
    "first.last@müller-brot.de", "user%corp@relay.net", "no-reply@notifications.shop.example.com", "q@qq.com",
    "hans@1und1.de", "team@recallog.dev",
]  # fmt: skip
_PHONES = [
    "+1 415 555 2671", "+14155552671", "(415) 555-2671", "415-555-2671", "415.555.2671", "+44 20 7946 0958",
    "+49 30 123456", "+49 (0)171 1234567", "030 12345678", "0171/1234567", "06 12 34 56 78",
    "+33 6 12 34 56 78", "13812345678", "+86 138 1234 5678", "1-800-555-0199", "+81 90-1234-5678", "+91 98765 43210",
    "0044 20 7946 0958",
]  # fmt: skip
_CARDS = [
    "4539 1488 0343 6467", "4539148803436467",
    "5555-5555-5555-4444", "5105105105105100", "3714 496353 98431", "378282246310005", "6011 0009 9013 9424",
    "3530 1113 3330 0000", "3056 930902 5904", "2223003122003222", "6250 9410 0652 8599", "4012-8888-8888-1881",
]  # fmt: skip

_FRAMES = {
    "secrets": [
        "My key is {} and it works.", "export KEY={}\n", '{{"credentials": "{}"}}', "curl -H 'X-Key: {}' https://a.b/c",
        "key: {}", "I put `{}` into the file.", "{}", "Found in .env:\nTHE_KEY='{}'\nDEBUG=1",
    ],
    "emails": [
        "Write to {} today.", "<{}>", "From: Alice <{}>\nTo: all", '{{"email": "{}"}}', "mailto:{}", "{}", "({}), or call.",
        "cc {}; bcc nobody.",
    ],
    "phones": ["Call {} now.", "Tel: {}", '{{"phone": "{}"}}', "My number is {}.", "{}", "{} (mobile)", "Reach me: {}, please."],
    "cards": ["My card is {}.", "Card: {}", '{{"pan": "{}"}}', "{}", "Charge {} please", "visa {}, exp 12/29"],
}  # fmt: skip


def _look_alikes(chance: random.Random) -> list[str]:
    hex40, hex64 = _of(chance, 40, _HEX), _of(chance, 64, _HEX)
    return [
        "550e8400-e29b-41d4-a716-446655440000", "id 019b64e5-57fa-7463-b644-fba7e456f905 was added.",
        f"commit {hex40}", f"sha256:{hex64}", f"index {hex40[:7]}..{hex64[:7]} 100644", f"etag W/\"{hex40[:32]}\"",
        "d41d8cd98f00b204e9800998ecf8427e  empty.txt", "md5 = 9e107d9d372bb6826bd81d3542a419d6",
        "Python 3.11.4, numpy 1.26.0", "react@18.2.0", "npm i @types/node@20.11.5", "lodash@4.17.21-rc.a is out",
        "pkg:npm/left-pad@1.3.0", "pip install recallog==0.1.0.post20260301", "v2026.11.26-1830", "node_modules/.pnpm/a@1.0.0",
        "ISBN 978-0-306-40615-7", "ISBN 0-306-40615-2", "ISBN 9783161484100", "ISSN 2049-3630", "DOI 10.1000/182",
        "EAN 4006381333931", "Order 4532015112830367 was shipped.", "Order no. 2026-1130-5567-0042", "order #4111111111",
        "invoice 2024-0001-2345", "Ticket 5555 5555 5555 5555", "tracking 1Z999AA10123456784", "IMEI 354809104295874",
        "snowflake 1764183142123456789", "at 1764183142", "at 1764183142123 ms", "at 1764183142123456 us",
        "2026-11-26T18:47:22+0100", "2026-11-26 18:47:22.123456+01:00", "20261126184722", "01-02-2026 to 03-04-2026",
        "10:15:30 to 11:45:00", "192.168.178.255", "10.0.0.1:8080", "2001:db8:85a3::8a2e:370:7334", "00-14-22-01-23-45",
        "00:1B:44:11:3A:B7", "0x1f4a9c3d5e6b7081", "0b1010101010101010", "3.141592653589793", "0.4539148803436467",
        "-122.4194155", "lat 37.7749295, lon -122.4194155", "1,234,567,890", "12 345 678 901 EUR", "2 147 483 647",
        "18446744073709551615", "9007199254740993", "1e-10 and 6.02214076e23", "1024 2048 4096 8192", "port 65535",
        "2222 3333 4444 5555", "1111 2222 3333 4444 is a test pattern", "0000 0000 0000 0000", "100-200-3000 sacks",
        "pages 123-456-789", "123-45-6789", "version 415.555.26", "rgb(205, 92, 92)", "#ff8800", "step 1 415 5 of 2671",
        "git@github.com:recallog/recallog.git", "git clone git@gitlab.example.com:group/app.git", "icon@2x.png",
        "logo@3x.webp", "@app.route('/bread')", "@dataclass", "x @ weight.T", "y = x@weight.transpose(0, 1)",
        "h = x@self.w[0]", "a@b", "me @home", "@alice and @bob", "user@localhost", "foo@bar", "50% @ 3.5",
        "https://medium.com/@alice/bread", "https://alice@git.example.com/app.git", "ssh://git@host.example.com/x",
        "see https://example.com/login?next=/home", "postgres://db.example.com:5432/app", "redis://localhost:6379/0",
        "http://127.0.0.1:6333", "kafka://host:9092/recallog.events?partitions=32", "amqp://{user}:{password}@host/",
        "postgres://user:${DB_PASSWORD}@db/app", "sk-learn", "task-queue-with-a-long-name-of-many-parts",
        "disk-image-builder-for-the-cluster-2026", "sk-circle-fade-animation-delay", "risk-assessment-of-the-mill",
        "desk-organizer-with-twelve-drawers-oak", "ask-me-anything-about-the-bakery-today", "sk_buff *skb", "pk_name",
        "key = value", "token = get_token()", "token: str", "max_tokens=4096", "tokens: 1234567890", "api_key=None",
        "api_key = os.environ['API_KEY']", "password = input('Password: ')", "password: ********", "PASSWORD=changeme",
        "secret_name: bakery", "secretKeyRef: {name: oven, key: heat}", "def authenticate(token: Token) -> User:",
        "const apiKey = config.apiKey", "if (!token) return null", "primary_key=True", "foreign_key: users.id",
        "key=lambda item: item.name", "cache_key = f'{space}/{agent}'", "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <token>", "the token expired", "a secret recipe", "passwords are stored hashed",
        "keyboard", "monkey: banana-bread-recipe", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----", "It starts with -----BEGIN PRIVATE KEY-----.",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2aVYdFq0", "eyJ is how a JSON object begins in base64", "eyJhbGciOiJub25lIn0",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA", "AKIA is a prefix of access keys", "AIza", "ghp_short",
        "xoxb- is a prefix", "sk-ant- is Anthropic's", "GOCSPX", "eyJx.y.z", "hf_hub_download(repo_id)", "npm_config_cache",
        "pypi-server", "SG.1", "whsec_", "sk_test_", "glpat", "toolu_01A09q90qw90lq917835lq9", "call_abc123DEF456ghi789JKL0",
        "msg_01XFDUDYJgAACzvnptvVoYEL", "chatcmpl-9aBcDeFgHiJkLmNoPqRsT", "req_011CSHoEeqs5C35K2UUqR7Fy", "org-abcdEFGH1234",
        "The baker owes the miller nine sacks.", "Es kostet 12,50 Euro am 3. Mai 2026.", "今天下午三点开会,预算是12000元。",
        "for i in range(1000000): total += i", "assert x == 4539148803436468", "SELECT * FROM orders WHERE id = 4716461583322103",
        "MAX_VALUE = 4294967295", "seed=20260301123456", "part no. 555-1234", "room 0171", "0800", "the year 1984-1985",
        "score 21-19 21-17", "chapters 1-12 13-24", "uuid5 6f1c2a52-93c7-5b0e-8d0a-7d5f5b1e4c11", "0:41", "+1", "+12 sacks",
        "1 + 23456789", "a+1234567", "diff +120 -45", "@@ -1415,55 +2671,12 @@", "line 415, column 555", "2026-11-26",
        "DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19", "SSN 078-05-1120", "VAT DE123456789", "AB-1234-5678-CD",
    ]  # fmt: skip
