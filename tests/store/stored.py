"""Turns in a database, for the tests of the store."""

from dataclasses import dataclass, field, replace

from app.ports import (
    AuditEntry,
    Claim,
    Command,
    Commit,
    Conversation,
    HistoryMessage,
    Opened,
    Receipt,
    Scope,
)
from app.store.claims import PostgresClaims
from app.store.conversations import PostgresConversations
from app.store.pool import Database
from app.store.turns import PostgresTurns
from app.turn import inputs as i
from app.turn.decide import decide
from app.turn.evolve import advance, fold
from app.turn.ids import (
    ActorId,
    AgentId,
    AgentVersion,
    AttemptId,
    ConversationId,
    Identity,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.start import start, succeed
from app.turn.state import Turn
from tests.support.turns import NOON, a_message, an_agent

TENANT = TenantId("default")
ALL = Scope(tenant_id=TENANT, owner_id=None)
VERSIONS = [(AgentId("clerk"), AgentVersion("1"))]


def an_entry(action: str = "MESSAGE") -> AuditEntry:
    return AuditEntry(
        tenant_id=TENANT,
        actor_id=ActorId("ann"),
        action=action,
        request_id="req_1",
        outcome="accepted",
    )


def a_command(message_id: str | None = None) -> Command:
    receipt = (
        None
        if message_id is None
        else Receipt(message_id=MessageId(message_id), digest=f"digest of {message_id}")
    )
    return Command(audit=an_entry(), receipt=receipt)


def a_conversation(conversation_id: str = "c1", owner: str = "ann") -> Conversation:
    return Conversation(
        tenant_id=TENANT,
        conversation_id=ConversationId(conversation_id),
        owner_id=ActorId(owner),
        agent_id=AgentId("clerk"),
        title="hello",
        created_at=NOON,
        updated_at=NOON,
    )


@dataclass(slots=True)
class Stored:
    """A store, and turns made in it."""

    database: Database
    turns: PostgresTurns = field(init=False)
    claims: PostgresClaims = field(init=False)
    conversations: PostgresConversations = field(init=False)

    def __post_init__(self) -> None:
        self.turns = PostgresTurns(self.database)
        self.claims = PostgresClaims(self.database, lease_seconds=15)
        self.conversations = PostgresConversations(self.database)

    async def a_turn(
        self,
        turn_id: str = "t1",
        conversation_id: str = "c1",
        *,
        first_position: int = 0,
        message_id: str = "m1",
        version: str = "1",
        held: bool = False,
    ) -> Turn:
        identity = Identity(
            turn_id=TurnId(turn_id),
            tenant_id=TENANT,
            conversation_id=ConversationId(conversation_id),
            agent_id=AgentId("clerk"),
            agent_version=AgentVersion(version),
        )
        message = a_message(message_id=message_id)
        events = start(identity, message, first_position=first_position, at=NOON, held=held)
        turn = fold(events)
        commit = Commit(before=turn, after=turn, events=events, at=NOON)
        await self.turns.create(a_conversation(conversation_id), commit, a_command(message_id))
        return turn

    async def tell(self, turn: Turn, given: i.Input, *, claim: Claim | None = None) -> Turn:
        commit = a_commit(turn, given)
        await self.turns.append(commit, claim=claim)
        return commit.after

    async def received_by(self, message_id: str) -> str:
        """The turn that has the message."""
        return str(
            await self.database.value(
                "SELECT turn_id FROM received WHERE message_id = $1", message_id
            )
        )

    async def append(self, commit: Commit, claim: Claim) -> list[HistoryMessage]:
        return list((await self.turns.append(commit, claim=claim)).messages)

    async def count(self, table: str) -> int:
        return int(await self.database.value(f"SELECT count(*) FROM {table}"))  # noqa: S608

    async def expire_claims(self) -> None:
        """What waiting for the lease's end would do."""
        await self.database.execute(
            "UPDATE turns SET claimed_until = clock_timestamp() - interval '1 s' "
            "WHERE claimed_until IS NOT NULL"
        )


def a_commit(turn: Turn, given: i.Input) -> Commit:
    events = decide(turn, given, at=NOON, agent=an_agent())
    assert events
    return Commit(before=turn, after=advance(turn, events), events=events, at=NOON)


def with_successor(commit: Commit, turn_id: str = "t2") -> Commit:
    """The same end of a turn, opening the next one."""
    identity = replace(commit.after.identity, turn_id=TurnId(turn_id))
    events = succeed(commit.after, identity, at=NOON)
    return replace(commit, successor=Opened(turn=fold(events), events=events))


def begin(attempt: str = "a1") -> i.BeginStep:
    return i.BeginStep(attempt_id=AttemptId(attempt))
