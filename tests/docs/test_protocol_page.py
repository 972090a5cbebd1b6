"""Every number on the page of the protocol is the source's own: a program is written from that page alone.

`FACTS` are the phrases of the page that hold numbers, in its order and with the numbers of the source in them. Each
must stand on the page, and together they must cover all its numbers: a constant that changes, and a number
that is added without its source, fail here.
"""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from typing import Any

import msgspec
import pytest

from shoal.evolve import rounds, state
from shoal.evolve.domains.corewar import CoreWarOptions
from shoal.evolve.searcher import Searcher
from shoal.evolve.settings import EvolveSettings
from shoal.node.processes import OPEN_SWARM
from shoal.policy.pool import PoolLimits
from shoal.runs import derive_integer, training
from shoal.swarm import (
    authors,
    beacon,
    body,
    codec,
    frame,
    identity,
    kinds,
    membership,
    outbox,
    pull,
    quota,
    repair,
    shards,
    upkeep,
    watchdog,
)
from shoal.swarm.rejection import Rejection
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport import addresses, zenoh_session
from shoal.swarm.transport.base import MOST_MESSAGE_BYTES, short_hash
from shoal.swarm.transport.neighbours import LINKS, Draw
from shoal.tasks import open_task, verifier
from shoal.tasks.family import MOST_PARAMETERS
from shoal.train.rollouts import SEED_BITS, rollout_kinds, task_seed
from tests.docs.pages import ROOT, blocks
from tests.swarm.vectors.make import COUNTER, EPOCH, SEED
from tests.test_items import KINDS

PAGE = ROOT / "docs" / "protocol.md"
NUMBERS = {2: "two", 3: "three", 4: "four", 6: "six", 10: "ten"}
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def bound(struct: type, path: str, name: str) -> Any:
    """A bound of a field, e.g. `bound(Header, "topic", "max_length")`."""
    type_: Any = msgspec.inspect.type_info(struct)
    for part in path.split("."):
        if part == "[]":
            type_ = type_.item_type
        else:
            type_ = next(field.type for field in type_.fields if field.name == part)
    found = getattr(type_, name)
    assert found is not None, f"{struct.__name__}.{path} has no {name}"
    return found


def power(value: float) -> str:
    """2⁶², 10¹², −10⁶."""
    base, exponent = next(
        (base, exponent)
        for base in (10, 2)
        for exponent in range(100)
        if base**exponent == abs(value) and exponent
    )
    return f"{'−' if value < 0 else ''}{base}{str(exponent).translate(SUPERSCRIPT)}"


def word(value: float) -> str:
    assert value == int(value)
    return NUMBERS[int(value)]


def zenoh_release() -> str:
    """Major and minor version: the one that is pinned."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (pinned,) = (one for one in project["dependencies"] if one.startswith("eclipse-zenoh"))
    found = re.fullmatch(r"eclipse-zenoh>=(\d+)\.(\d+)\.\d+,<(\d+)\.(\d+)", pinned)
    assert found is not None, pinned
    assert (int(found[3]), int(found[4])) == (int(found[1]), int(found[2]) + 1)
    return f"{found[1]}.{found[2]}"


def made_up_for() -> float:
    """The part of an offence that one good frame makes up for."""
    mute = quota.Mute(offences=1.0)
    mute.behave()
    return 1.0 - mute.offences


def facts() -> list[str]:
    settings, pool = ExchangeSettings(), PoolLimits()
    champion = next(kind for kind in Searcher.kinds)
    group = next(kind for kind in rollout_kinds())
    champions, groups = champion.wire, group.wire
    assert champions is not None
    assert groups is not None
    identity_of = identity.Identity(SEED)
    sums = open_task("sums")
    rules = CoreWarOptions()
    seed = task_seed(identity_of.node_id, EPOCH, COUNTER)
    example = short_hash("example")
    most = codec.Codec(membership.Membership("x"), KINDS).most_frame_bytes
    least = codec.Codec(membership.Membership("x"), kinds.Kinds()).most_frame_bytes
    period = beacon.beacon_period
    assert EvolveSettings().domain == "corewar"
    return [
        f"# The protocol of a swarm, version {frame.VERSION}",
        f"integers from 0 to {power(bound(frame.Header, 'epoch', 'lt'))} − 1 unless stated",
        # Identity
        f'`blake2b({identity.ID_BYTES}, person="shoal node id")` of the {identity.KEY_BYTES}-byte public key. '
        f"As text an id has {len(identity_of.node_id)} characters of lower-case base32",
        f"A receiver takes the last {word(authors.EPOCHS)} epochs of an author.",
        f"more than {settings.ahead_seconds:g} s ahead of the receiver's clock",
        # Swarm
        'salt = "shoal swarm\\0" + name',
        f"root = blake2b({len(membership._root('x', ''))})(salt) without a secret",
        f"scrypt(secret, salt, N={1 << 14}, r=8, p=1, {len(membership._root('x', 'y'))} bytes) with one",
        f'swarm id = blake2b({membership.SWARM_ID_BYTES}, key=root, person="shoal swarm id")("")',
        f'domain tag = "{membership.DOMAIN.decode()[:-1]}\\0" + blake2b('
        f'{len(membership.Membership("x").domain_tag) - len(membership.DOMAIN)}, key=root, person="shoal domain")("")',
        f"no `--swarm` is in the swarm `{OPEN_SWARM}`.",
        # Transport
        f"No message is longer than {MOST_MESSAGE_BYTES:,} bytes.",
        f"name hash = blake2b({len(bytes.fromhex(example))})(name)",
        f"`eclipse-zenoh` in version {zenoh_release()}.",
        f"the topic `log/0` it is `shoal/{example}/log/0`",
        f"up to {LINKS} others to connect to",
        f"`--listen tcp/127.0.0.1:{addresses.DEFAULT_PORT}`",
        f"and the topic `log/0`, `shoal.{example}.log.0`",
        f"messages of {MOST_MESSAGE_BYTES:,} bytes, which is its default. Port {addresses.NATS_PORT} is used",
        f"There is {settings.shards} shard, so the topics are `log/0`, `latest/0`, `beacon/0`, and",
        'the first 8 bytes (big endian) of `blake2b(8, person="shoal shard")`',
        # Frames
        f"signature: binary({identity.SIGNATURE_BYTES}), body: binary] alone",
        f"signature: binary({identity.SIGNATURE_BYTES}), body: binary, roll: binary] with others",
        f"header = [version = {frame.VERSION}, swarm id: binary({membership.SWARM_ID_BYTES}), "
        f"author key: binary({identity.KEY_BYTES}), epoch, seq ≥ {bound(frame.Header, 'seq', 'ge')}, made_at, "
        f"topic: text ≤ {bound(frame.Header, 'topic', 'max_length')}, digest: binary({body.DIGEST_BYTES}), shared] "
        f"at most {bound(frame.Envelope, 'header', 'max_length')} bytes",
        f"domain tag + 0x{codec.ROLL_MARK.hex().upper()} + roll) with one",
        f"sha256(header) of 2 to {frame.MOST_ON_A_ROLL} frames that leave together",
        f"at a multiple of {body.DIGEST_BYTES} bytes",
        f"No header begins with 0x{codec.ROLL_MARK.hex().upper()},",
        "In the log it counts 1, 2, 3 … without gaps",
        "Registers and beacons count 1, 2, 3 … too",
        f"{body.PLAIN}: msgpack {body.ZSTD}: zstd of msgpack",
        f"items = [[kind: text 1–{kinds.MOST_NAME_CHARACTERS}, payload: binary], …] 1 to {body.MOST_ITEMS} of them",
        f"Nodes send encoding {int(settings.compress)} unless",
        f"up to about {codec.FRAME_FILL_BYTES:,} bytes",
        # Beacons and pulls
        f"[endpoints: [text ≤ {bound(beacon.Beacon, 'endpoints.[]', 'max_length')}, … at most "
        f"{beacon.MOST_ENDPOINTS}], vector: [known, … at most {beacon.MOST_ENTRIES}]]",
        f"known = [author id: binary({identity.ID_BYTES}), epoch, oldest, contiguous, newest, latest, behind]",
        "such as `tcp/192.0.2.1:7447`",
        "it holds `newest − 1 − i` too",
        "`oldest`, `contiguous` and `newest` are 0. If none is held any more, `oldest` is `newest + 1`.",
        f"pull = [nonce: binary({frame.NONCE_BYTES}), [[author id: binary({identity.ID_BYTES}), epoch,",
        f'bundle = ["bundle", nonce: binary({frame.NONCE_BYTES}), [frame: binary, …]]',
        f"at most {pull.MOST_IDS} frames (a set of registers counts as one)",
        f"at most {pull.MOST_ANSWER_BYTES:,} bytes of frames but at least one",
        f"within the first {pull.MOST_IDS + body.MOST_ITEMS}.",
        f"within {repair.TIMEOUT:g} s is left alone",
        f"each asker {settings.serve_bytes_per_second:,.0f} bytes a second, and all together "
        f"{word(pull.ALL_ASKERS)} times that",
        # Items
        f"| `champion` | domain: text {bound(champions, 'domain', 'min_length')}–"
        f"{bound(champions, 'domain', 'max_length')}, source: text ≤ {bound(champions, 'source', 'max_length'):,}, "
        f"round: {bound(champions, 'round', 'ge')} to {power(bound(champions, 'round', 'lt'))} − 1, "
        f"model: text ≤ {bound(champions, 'model', 'max_length')}, "
        f"fitness: {power(bound(champions, 'fitness', 'ge'))} to {power(bound(champions, 'fitness', 'le'))} | "
        f"`{champion.keep}/` | {champion.max_bytes:,} |",
        f"| `rollouts` | task, question: text ≤ {bound(groups, 'question', 'max_length'):,}, "
        f"completions: {bound(groups, 'completions', 'min_length')} to {training.MOST_COMPLETIONS} of them, "
        f"model: text ≤ {bound(groups, 'model', 'max_length')}, "
        f"tokenizer: text ≤ {bound(groups, 'tokenizer', 'max_length')}, "
        f"temperature: above {bound(groups, 'temperature', 'gt')}, at most {bound(groups, 'temperature', 'le')} | "
        f"`{group.keep}/` | {group.max_bytes:,} |",
        f"task = [family: text {bound(groups, 'task.family', 'min_length')}–"
        f"{bound(groups, 'task.family', 'max_length')}, version: text ≤ {bound(groups, 'task.version', 'max_length')}, "
        f"parameters: text ≤ {bound(groups, 'task.parameters', 'max_length'):,}, "
        f"counter: {bound(groups, 'task.counter', 'ge')} to {power(bound(groups, 'task.counter', 'le'))}]",
        f"completion = [text ≤ {bound(groups, 'completions.[].text', 'max_length'):,}, finished: bool, log-probs: "
        f"[number from {power(bound(groups, 'completions.[].log_probs.[]', 'ge'))} to 0, … at most "
        f"{bound(groups, 'completions.[].log_probs', 'max_length'):,}]]",
        f"it plays up to {rounds.MOST_VISITORS} champions that came since the last one, up to "
        f"{state.MOST_WAITING_OF_AUTHOR} of one author",
        f"a core of {rules.core_size:,} cells and at most {rules.length} instructions",
        f"keeps a group for {pool.staleness} of its own steps, and {pool.author_groups} groups of an author",
        # Seeds and questions
        f'seed = the first {SEED_BITS} bits of blake2b(64, person="shoal.seeds")',
        "`counter` is the author's own: 0, 1, 2 … since",
        f"| epoch, author, counter | {EPOCH}, `{identity_of.node_id}`, {COUNTER} |",
        f"| hashed | `i{len(str(EPOCH))}:{EPOCH}s4:tasks{len(identity_of.node_id)}:{identity_of.node_id}"
        f"i{len(str(COUNTER))}:{COUNTER}` |",
        f"| seed | {seed} |",
        f"| question of `sums` | `{sums.pose(seed).question}` |",
        f"`sums`, version `{sums.version}`",
        f"{word(sums.parameters['terms'])} terms from 0 to {sums.parameters['largest']} with the sign "
        f"`{sums.parameters['operators']}`",
        "words of 32 bits",
        "`randint(0, m)` takes the upper k bits of the next output, where k is the length of m + 1 in bits",
        "`choice` takes the place `randint(0, length − 1)`.",
        f"A score of {verifier.RIGHT} or more counts as right",
        f"`{json.dumps(sums.parameters, sort_keys=True, separators=(',', ':'))}`",
        # Checks
        f"the largest kind's limit plus {most - KINDS.most_bytes:,} bytes, at least {least:,}; a bundle "
        f"{MOST_MESSAGE_BYTES:,} (*oversize*)",
        f"asked for {settings.ttl_seconds:,.0f} s, all others {settings.push_ttl_seconds:g} s (*stale*); "
        f"not more than {settings.ahead_seconds:g} s ahead (*future*)",
        f"`made_at` divided by {quota.MINUTE:,}",
        f"| frames with items | {quota.most_in_a_minute(settings).frames} |",
        f"| bytes of these frames, each without its first {outbox.ENVELOPE:,} | "
        f"{quota.most_in_a_minute(settings).size:,} |",
        f"| beacons and pulls | {quota.most_in_a_minute(settings).control} |",
        f"takes {quota.STARTS_AT_ONCE} at once, and one more every {quota.START_EVERY:g} s",
        "It may be 0 or left out.",
        f"| frames with items | {settings.frames_burst} | {settings.frames_per_second:g} a second |",
        f"| bytes of these frames | {settings.bytes_per_minute:,} | {settings.bytes_per_minute:,} a minute |",
        f"| beacons and pulls | {settings.control_burst} | {settings.control_per_second:g} a second |",
        f"After {quota.OFFENCES_TO_MUTE} failures that count against it an author is muted for "
        f"{quota.SHORTEST_MUTE:g} s, and for twice as long each further time, up to {quota.LONGEST_MUTE:g} s",
        f"{word(round(1 / made_up_for())).capitalize()} good frames make up for one failure.",
        f"until {settings.probation_items} of its items were verified",
        f"get {settings.probation_share} of the items that a receiver takes in, and at least "
        f"{settings.newcomers_per_minute:g} items a minute",
        # Times
        f"one second up to {beacon.NODES_PER_SECOND} nodes, n/{beacon.NODES_PER_SECOND} seconds for n nodes, "
        f"at most {period(10**6):g} seconds",
        f"| beacon | every P ± {beacon.JITTER:.0%} |".replace("%", " %"),
        f"| repair tick | every P/2 ± {beacon.JITTER:.0%};".replace("%", " %"),
        f"| vector | used for {beacon.VECTOR_PERIODS} P:",
        f"| present | a verified frame within {beacon.ALIVE_PERIODS:g} P:",
        f"an author's newest {settings.keep_frames} log frames and {settings.keep_author_bytes:,} bytes, for "
        f"{settings.ttl_seconds:,.0f} s; of an author met late, the newest {settings.history_frames} are fetched",
        f"| register | sent again once it is {settings.ttl_seconds / 2:,.0f} s old |",
        f"| pull | {pull.MOST_IDS} numbers, {pull.MOST_ANSWER_BYTES:,} bytes, one per holder and {repair.UNDER_WAY} "
        f"in all, {repair.TIMEOUT:g} s; a silent holder is left alone for {repair.LEFT_ALONE:g} s, "
        f"{2 * repair.LEFT_ALONE:g} s, … {repair.LEFT_ALONE_LONGEST:g} s |",
        f"after {word(watchdog.DOUBTFUL)} pulls to {word(watchdog.HOLDERS)} nodes, or to one in good standing, and "
        f"no answer for max({beacon.watchdog_waits(1.0) / 2:g} s, {beacon.watchdog_waits(100.0) / 200:g} P): up to "
        f"{word(repair.PROBES)} nodes",
        f"{repair.PROBE_TIMEOUT:g} s; not more often than every {repair.PROBE_EVERY:g} s |",
        f"if {word(watchdog.FETCHED)} frames of an author were fetched and none pushed for "
        f"max({beacon.watchdog_waits(1.0):g} s, {beacon.watchdog_waits(100.0) / 100:g} P)",
        f"none of {word(watchdog.UNANSWERED)} pulls was answered",
        f"not again for {watchdog.SHORTEST:g} s ± 30 %, doubling to {watchdog.LONGEST:g} s, back to "
        f"{watchdog.SHORTEST:g} s after a healthy minute |",
        f"more than {upkeep.STALL:g} s late forgets vectors, open pulls and silence, and does not reopen for "
        f"{upkeep.QUIET_AFTER_STALL:g} s |",
        f"a vector makes at most {pull.MOST_IDS} missing numbers known",
        f"the private seed 0x{SEED[0]:02x}, 0x{SEED[1]:02x}, … 0x{SEED[-1]:02x}",
    ]


WITHOUT_SOURCE = re.compile(
    r"since 1970|ed25519|BLAKE2b|blake2b\(n\)|SHA-256|sha256|base32|UTF-8|MT19937|step [79]|steps? \d|(?<=\s)\d\.(?=\s)"
)
"""Names that hold digits, and the numbers of lists."""


def flat(text: str) -> str:
    return " ".join(text.split())


def missing(page: str) -> list[str]:
    """The facts that are not on the page."""
    return [fact for fact in facts() if flat(fact) not in flat(page)]


def unsourced(page: str) -> list[str]:
    """The numbers that are no part of a fact, outside of the blocks that are run or compared elsewhere."""
    for block in blocks(PAGE):
        if block.language in ("python", "json", "redcode"):
            page = page.replace(block.text, "\n")
    page = flat(page)
    for fact in sorted(map(flat, facts()), key=len, reverse=True):
        page = page.replace(fact, "§")
    page = WITHOUT_SOURCE.sub("", page)
    return [page[max(0, found.start() - 40) : found.end() + 30] for found in re.finditer(r"[0-9⁰-⁹]+", page)]


def test_every_fact_stands_on_the_page() -> None:
    wrong = missing(PAGE.read_text(encoding="utf-8"))
    assert not wrong, "the page says otherwise than the source:\n" + "\n".join(wrong)


def test_every_number_on_the_page_has_its_source() -> None:
    left = unsourced(PAGE.read_text(encoding="utf-8"))
    assert not left, "numbers without a source, which `facts` should name:\n" + "\n".join(left)


def test_a_change_on_either_side_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert unsourced(f"{page}\nA frame has at most 17 items.\n")
    assert missing(page.replace("65,536", "65,535", 1))
    monkeypatch.setattr(quota, "OFFENCES_TO_MUTE", quota.OFFENCES_TO_MUTE + 1)
    assert missing(page)


def test_the_configuration_of_zenoh_is_the_one_that_nodes_use() -> None:
    """Every entry of the page's block is in a client's own configuration, with the same value."""
    (shown,) = (json.loads(block.text) for block in blocks(PAGE) if block.language == "json")
    used = zenoh_session.settings(Draw("client", (), ("tcp/127.0.0.1:7447",)), None)

    def within(part: Any, whole: Any) -> bool:
        if isinstance(part, dict):
            return all(name in whole and within(value, whole[name]) for name, value in part.items())
        return bool(part == whole)

    assert within(shown, used)


def test_the_rejections_are_named_in_their_order() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## The checks of a receiver")[2].partition("\n### ")[0]
    named = [flat(name) for name in re.findall(r"\*([a-z ]+)\*", page)]
    assert list(dict.fromkeys(named)) == [reason.value for reason in Rejection]


def test_numbers_that_stand_in_calls_are_those_of_the_source() -> None:
    for function, call in (
        (membership._root, 'salt = b"shoal swarm\\0" + name.encode()'),
        (membership._root, "n=1 << 14, r=8, p=1, dklen=32"),
        (shards.shard_of, 'digest_size=8, person=b"shoal shard"'),
        (derive_integer, 'digest_size=64, person=b"shoal.seeds"'),
        (watchdog.Watchdog.check, "uniform(0.7, 1.3)"),
        (upkeep.Upkeep._mend, "0.5 * self._period"),
    ):
        assert call in inspect.getsource(function), function
    assert bound(training.SentGroup, "task.parameters", "max_length") == MOST_PARAMETERS
