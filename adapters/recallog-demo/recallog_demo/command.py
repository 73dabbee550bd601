"""`demo`: runs the demo and prints each of its steps."""

import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from recallog import Memory
from recallog.views import ContextView, EpisodicView, Explanation, RecallView, TableCheck, VerifyReport
from recallog_demo import days, facts, lesson, village
from recallog_service.cli import terminal
from recallog_service.cli.console import out
from recallog_service.cli.rendering import print_verified
from recallog_service.cli.terminal import Json


def register(app: typer.Typer) -> None:
    app.command("demo", epilog="Example: recallog demo --home .recallog/demo")(demo_command)


def demo_command(
    home: Annotated[Path, typer.Option(help="Folder of the demo, which stays for later commands.")] = Path(
        ".recallog/demo"
    ),
    as_json: Json = False,
) -> None:
    """Run the demo: a village, a missing chest, a wrong belief, and a memory that survives kill -9."""

    async def work() -> dict[str, Any]:
        await village.remove_earlier_run(home)
        printer = _Silent() if as_json else _Printer()
        return await _story(home, printer)

    seen = terminal.run(work, as_json=as_json)
    if as_json:
        terminal.print_json(seen)
    raise typer.Exit(0 if seen["ok"] else 1)


async def _story(home: Path, printer: "_Printer") -> dict[str, Any]:
    printer.beginning()
    with terminal.bar("ingesting") as advance:
        crash = await village.crash_and_repeat(home, advance)
    printer.crash(crash)
    async with Memory.open(village.settings(home)) as memory:
        accuser, knower = await village.side_by_side(memory)
        knowing = await village.who_knows(memory, village.PRIVATE_THOUGHT)
        printer.scene(accuser, knower, knowing)
        wrong = await village.reflected(memory, village.WRONG_BELIEF)
        better = await village.reflected(memory, village.BETTER_BELIEF)
        printer.reflections(wrong, better)
        then = await village.belief_at(memory, village.TURN_OF_THE_WRONG_BELIEF)
        later = await village.belief_at(memory, village.TURN_OF_THE_BETTER_ONE)
        printer.beliefs(then.line(village.ACCUSER), later.line(village.ACCUSER))
        why = await village.why_remembered(memory)
        printer.explanation(why)
        prompt = await village.prompt(memory)
        printer.prompt(prompt)
        with tempfile.TemporaryDirectory(prefix="recallog-demo-") as folder, terminal.bar("indexing") as advance:
            recalled = await village.recall_in_other_words(Path(folder), advance)
        printer.recall(recalled)
        with tempfile.TemporaryDirectory(prefix="recallog-demo-") as folder:
            learned = await lesson.learn_and_forget(Path(folder))
        printer.learned(learned)
        with tempfile.TemporaryDirectory(prefix="recallog-demo-") as folder:
            drawn = await facts.draw_and_follow(Path(folder))
        printer.drawn(drawn)
        with tempfile.TemporaryDirectory(prefix="recallog-demo-") as folder:
            aged = await days.let_days_pass(Path(folder))
        printer.aged(aged)
        before, kept = await memory.admin.verify(), await memory.admin.digest()
        damaged = await village.corrupt_and_verify(home, memory)
        printer.damage(damaged)
        rebuilt = await village.restore_and_rebuild(home, memory, kept)
        printer.rebuilt(before, rebuilt)
    found = [address for table in damaged.tables for address in _named(table)]
    ok = (
        crash.lost == crash.doubled == 0
        and knowing == [village.KNOWER]
        and wrong.due.due
        and better.due.due
        and (then.event.id, later.event.id) == (village.WRONG_BELIEF, village.BETTER_BELIEF)
        and village.VERDICT in later.based_on
        and why.verdict == "remembered"
        and why.memory is not None
        and prompt.tokens <= village.PROMPT_TOKENS
        and recalled.as_expected
        and learned.as_expected
        and drawn.as_expected
        and aged.as_expected
        and [finding.problem for finding in damaged.ledger] == ["changed"]
        and any(address.startswith(f"episodic.own / {village.SPACE} / {village.KNOWER}") for address in found)
        and rebuilt.clean
        and rebuilt.digest == before.digest
    )
    printer.ending(home, ok)
    return {
        "ok": ok,
        "home": str(home),
        "crash": asdict(crash),
        "private_thought_known_to": knowing,
        "reflection_was_due_since": str(wrong.due.since),
        "belief_then": then.text,
        "belief_later": later.text,
        "belief_later_based_on": list(later.based_on),
        "why_remembered": why.sum(),
        "prompt_tokens": prompt.tokens,
        "question": village.IN_OTHER_WORDS,
        "without_index_because": recalled.without_index,
        "recalled_by_words": [hit.event.id for hit in recalled.by_words.hits],
        "recalled_by_knower": [hit.event.id for hit in recalled.knower.hits],
        "recalled_by_accuser": [hit.event.id for hit in recalled.accuser.hits],
        "recalled_by_accuser_later": [hit.event.id for hit in recalled.later.hits],
        "lesson_used": learned.used,
        "lesson_corrected": learned.corrected,
        "lesson_forgotten": learned.forgotten,
        "lesson_found_after_rebuild": learned.found_after_rebuild + learned.listed_after_rebuild,
        "lesson_audit": learned.audit,
        "facts_drawn": list(drawn.facts),
        "facts_question": facts.QUESTION,
        "facts_over_two_hops": [hit.text for hit in drawn.linked.hits],
        "facts_after_update": [hit.text for hit in drawn.updated.hits],
        "days": aged.days,
        "days_why": aged.why,
        "days_summaries": aged.summaries,
        "changes_found_in_ledger": [f"{finding.first} to {finding.last}" for finding in damaged.ledger],
        "damage_found_at": found,
        "digest_before": before.digest,
        "digest_after_rebuild": rebuilt.digest,
    }


def _named(table: TableCheck) -> list[str]:
    """The addresses of damaged rows, and of the first row that differs."""
    return [*table.damaged_addresses(), *([table.difference.address()] if table.difference else [])]


class _Printer:
    """Prints the steps on a terminal."""

    def beginning(self) -> None:
        events = village.recording()
        villagers = {event.agent for event in events} - {"narrator", "visitor", "judge"}
        out.print(f"\n[bold]Sallowford, a village of {len(villagers)} agents.[/]")
        out.print(
            "The sealed flood chest is gone from its locked cupboard on the day it was to be counted.\n"
            f"{len(events)} recorded events: words, private thoughts, clues, rulings."
        )

    def crash(self, crash: village.Crash) -> None:
        _heading("1  Kill -9")
        out.print(
            f"The ingesting process was killed with -9 after [bold]{crash.acknowledged}[/] acknowledged events; "
            f"{crash.in_ledger_after_kill} were in the ledger.\n"
            f"Started again it added the other {crash.added_by_second_run}: {crash.in_ledger} events, "
            f"[bold]{crash.lost} lost, {crash.doubled} doubled[/]."
        )

    def scene(self, accuser: EpisodicView, knower: EpisodicView, knowing: list[str]) -> None:
        _heading("2  One scene, two memories")
        out.print("The widow holds the smith's own book out to him: read it, then. Both women hear the same words.\n")
        both = Table.grid(expand=True, padding=(0, 1))
        both.add_column(ratio=1)
        both.add_column(ratio=1)
        both.add_row(_panel(accuser), _panel(knower))
        out.print(both)
        out.print(f"The teacher's [yellow]thought[/] is in the memory of [bold]{', '.join(knowing)}[/] alone.")

    def reflections(self, wrong: village.Reflected, better: village.Reflected) -> None:
        _heading("3  A wrong belief, and what changed it")
        due = wrong.due
        out.print(
            f"The widow reflects after {due.threshold} events. At {due.since} she had seen them, and a reflection was "
            f"due; at turn {wrong.belief.event.turn} she answered:"
        )
        self._belief(wrong, "red")
        out.print(f"\nA ruling and {better.due.events - 1} other events later, at turn {better.belief.event.turn}:")
        self._belief(better, "green")

    def _belief(self, reflected: village.Reflected, style: str) -> None:
        out.print(f"  {reflected.belief.text}", markup=False, style=style)
        for number, line in enumerate(reflected.due.lines(reflected.evidence)):
            lead = "  based on " if number == 0 else "           "
            out.print(f"{lead}{line}", markup=False, style="dim")

    def beliefs(self, then: str, later: str) -> None:
        _heading("4  Time travel")
        out.print(f"What did the widow believe at the end of turn {village.TURN_OF_THE_WRONG_BELIEF}?")
        out.print(f"  {then}", markup=False, style="red")
        out.print(f"And at the end of turn {village.TURN_OF_THE_BETTER_ONE}?")
        out.print(f"  {later}", markup=False, style="green")

    def explanation(self, why: Explanation) -> None:
        _heading("5  Why does he remember this?")
        out.print(f"Turn {why.turn}. The smith is asked: {village.QUESTION} He remembers:")
        if why.memory is not None:
            out.print(f"  {why.lines([why.memory])[0]}", markup=False, style="green")
        out.print(f"  {why.sum()}", style="bold")
        out.print(f"  {why.why}{'' if why.in_episodic else f'; it had left his window of {why.window} events'}.")

    def prompt(self, prompt: ContextView) -> None:
        _heading("6  The prompt that he gets")
        out.print(
            Panel(Text(prompt.text), title=f"{prompt.tokens} tokens of {village.PROMPT_TOKENS}", title_align="left"),
            soft_wrap=False,
        )

    def recall(self, recalled: village.Recalled) -> None:
        _heading("7  Ask the village")
        if recalled.without_index is None:
            out.print(f"A semantic index of {recalled.memories} events, maintained by a separate process.")
        else:
            out.print(f"The semantic index is unavailable: {recalled.without_index}", markup=False, style="red")
            out.print("Only words are compared.")
        out.print("Right after the scene of chapter 2, a question in words that no event contains:")
        out.print(f"  {village.IN_OTHER_WORDS}", markup=False, style="bold")
        if not recalled.by_words.hits:
            out.print("By words, nothing that the teacher remembers matches.", end="")
        if recalled.without_index is None:
            out.print(" By meaning, this matches best:")
            self._best(recalled.knower, "yellow")
            out.print("The same question to the widow. She cannot see that thought, and her best match is unrelated:")
            self._best(recalled.accuser, "red")
        else:
            out.print()
        out.print("Twenty turns later the teacher has testified, and the widow's best match is:")
        self._best(recalled.later, "green")

    def _best(self, found: RecallView, style: str) -> None:
        for hit, line in zip(found.hits[:1], found.lines(found.hits[:1]), strict=True):
            out.print(f"  {line}", markup=False, style=style)
            parts = [f"{name} {value:.3f}" for name, value in hit.parts.items() if abs(value) >= 0.0005]
            out.print(f"  {' + '.join(parts)} = {hit.score:.3f}, {hit.event.id} at turn {hit.event.turn}", style="bold")

    def learned(self, learned: lesson.Learned) -> None:
        _heading("8  A lesson")
        out.print("The evening on which she finds that she was wrong, the widow writes on her scratchpad:")
        for note in lesson.NOTES:
            out.print(f"  {note}", markup=False)
        out.print(
            f"The session {learned.session} ends. The scratchpad goes with it, and what is marked as a lesson is kept: "
            f"[bold]{learned.kept}[/] entry.\nIn her next prompt, under {lesson.RECALLED}, beside what was said:"
        )
        self._entries(learned.used, "yellow")
        out.print("She puts it better, and every prompt from then on has her new words alone:")
        self._entries(learned.corrected, "green")
        out.print(f"Then she forgets it. Entries in the prompt after that: [bold]{len(learned.forgotten)}[/].")
        found = learned.found_after_rebuild + learned.listed_after_rebuild
        out.print(
            f"Every view is built again from the ledger. Entries that recall and the list find: [bold]{found}[/].\n"
            f"The audit has what happened, without a word of it: {', '.join(learned.audit)}."
        )

    def drawn(self, drawn: facts.Drawn) -> None:
        _heading("9  Facts")
        out.print(
            "On the last morning the judge reads from the parish register. When her turn ends, the facts in it are"
        )
        out.print(f"kept, each with its source, by a rule and without a model: [bold]{len(drawn.facts)}[/] facts.")
        out.print("Somebody asks:")
        out.print(f"  {facts.QUESTION}", markup=False, style="bold")
        out.print("Four channels rank what she knows, and each adds to the score what its rank is worth:")
        if drawn.found.degraded is not None:
            out.print(f"  {drawn.found.degraded}", markup=False, style="red")
        for hit in drawn.found.hits[: len(facts.HOPS)]:
            parts = " + ".join(f"{name} {value:.4f}" for name, value in hit.parts.items())
            out.print(f"  {hit.text}\n    {parts} = {hit.score:.4f}", markup=False, style="yellow")
        out.print("The entities alone lead from the tenant to the owner: the fact that names her, one link, two links:")
        for hit in drawn.linked.hits:
            out.print(f"  {hit.text}", markup=False, style="green")
        out.print(
            "The mill is inherited. The fact is updated, and keeps its id. The answer now, and before the update:"
        )
        out.print(f"  {drawn.updated.hits[-1].text}", markup=False, style="green")
        out.print(f"  {drawn.before.hits[-1].text}", markup=False, style="dim")

    def aged(self, aged: days.Aged) -> None:
        _heading("10  Days pass")
        out.print(
            "That evening the widow notes what may matter, and for how long: in the tiers fast, slow and glacial.\n"
            "Each day a plan moves what was used to a faster tier, and what was not to a slower one. On the first "
            f"{days.ASKED_UNTIL} days she asks:"
        )
        out.print(f"  {days.QUESTION}\n", markup=False, style="bold")
        for id_, (text, tier, _) in days.NOTED.items():
            out.print(f"  {id_:7} {tier:7} {text}", markup=False, style="yellow")
        out.print("\nThe tiers at the end of each day:\n")
        table = Table.grid(padding=(0, 1))
        table.add_row("", *(str(number) for number in range(1, days.DAYS + 1)), style="bold")
        for id_ in days.NOTED:
            table.add_row(id_, *(day[id_] for day in aged.days))
        out.print(table)
        out.print("\nEach plan is an event, and says why:")
        self._entries(aged.why, "dim")
        out.print("What was archived is left in one line:")
        self._entries(aged.summaries, "green")
        same = "[green]the same[/]" if aged.same_after_rebuild else "[red]DIFFERENT[/]"
        out.print(f"The views are built again from the ledger: the tiers are {same}, and no plan is made again.")

    def _entries(self, lines: list[str], style: str) -> None:
        for line in lines:
            out.print(f"  {line}", markup=False, style=style)

    def damage(self, report: VerifyReport) -> None:
        _heading("11  The past is edited")
        out.print(
            "With SQLite, the third ruling in the ledger was changed: the smith now [red]is guilty[/]. So was a "
            "memory\nof the teacher in a view, and both have correct checksums. `recallog verify`:"
        )
        print_verified(report)

    def rebuilt(self, before: VerifyReport, after: VerifyReport) -> None:
        _heading("12  Delete every view")
        out.print("The ledger was restored; the views were deleted and folded again from offset zero.")
        for digest in after.digests:
            style = "green" if digest.matches else "red"
            out.print(f"  {digest.summary()}", markup=False, style=style)
        out.print(f"  all rows before the damage  {before.digest}\n  all rows after the rebuild  {after.digest}")
        same = "[green]equal[/]" if before.digest == after.digest else "[red]DIFFERENT[/]"
        out.print(f"  {same}: memory is a function of the ledger.")

    def ending(self, home: Path, ok: bool) -> None:
        _heading("Next" if ok else "[red]A step above did not give the expected result[/]")
        command = Path(sys.argv[0]).absolute()
        name = str(command.relative_to(Path.cwd())) if command.is_relative_to(Path.cwd()) else "recallog"
        out.print("Who took the chest? Follow the teacher's thoughts, look inside, then try your own chat log:\n")
        for line in (
            f"{name} timeline village teacher --kind agent.thought --home {home}",
            f'{name} recall village widow "did anybody apologise?" --explain --home {home}',
            f"{name} context village priest --budget-tokens 500 --home {home}",
            f"{name} watch village --home {home}",
            f"{name} console --home {home}",
            f"{name} ingest your-chat.json",
        ):
            out.print(f"  {line}", markup=False, style="bold")
        out.print(f"\nThe folder {home} contains the memory of the demo.")


class _Silent(_Printer):
    """Prints nothing, for --json."""

    def beginning(self) -> None: ...
    def crash(self, crash: village.Crash) -> None: ...
    def scene(self, accuser: EpisodicView, knower: EpisodicView, knowing: list[str]) -> None: ...
    def reflections(self, wrong: village.Reflected, better: village.Reflected) -> None: ...
    def beliefs(self, then: str, later: str) -> None: ...
    def explanation(self, why: Explanation) -> None: ...
    def prompt(self, prompt: ContextView) -> None: ...
    def recall(self, recalled: village.Recalled) -> None: ...
    def learned(self, learned: lesson.Learned) -> None: ...

    def drawn(self, drawn: facts.Drawn) -> None: ...
    def aged(self, aged: days.Aged) -> None: ...
    def damage(self, report: VerifyReport) -> None: ...
    def rebuilt(self, before: VerifyReport, after: VerifyReport) -> None: ...
    def ending(self, home: Path, ok: bool) -> None: ...


def _heading(text: str) -> None:
    out.print(f"\n[bold cyan]{text}[/]")


def _panel(view: EpisodicView) -> Panel:
    text = Text()
    for number, memory in enumerate(view.memories):
        thought = memory.event.kind == "agent.thought"
        who = "thinks" if thought else f"{memory.event.agent}"
        text.append(f"{who}: ", style="bold yellow" if thought else "bold")
        text.append(memory.text, style="yellow" if thought else "")
        text.append("\n" if number < len(view.memories) - 1 else "")
    return Panel(text, title=f"the {view.agent} remembers", title_align="left")
