"""The command `turnkeeper`: settings, logging, and then the process that was asked for."""

import sys
from typing import Annotated

import typer

from app.observability.logs import configure_logging
from app.settings import InvalidSettingsError, Settings, load_settings

cli = typer.Typer(
    help="Runs turns of AI agents as REST resources and never loses one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
failures = typer.Typer(help="What a model's failures mean to the service.", no_args_is_help=True)
cli.add_typer(failures, name="failures")
wires = typer.Typer(help="Looks at what providers send.", no_args_is_help=True)
cli.add_typer(wires, name="wires")

Host = Annotated[str | None, typer.Option(help="Address to listen on, before TURNKEEPER_HOST.")]
Port = Annotated[int | None, typer.Option(help="Port, before TURNKEEPER_PORT; 0 is any free one.")]


@cli.command()
def serve(host: Host = None, port: Port = None) -> None:
    """Serve the API and the page, with a worker beside them."""
    settings = _prepared(host=host, port=port)
    # Loading the service takes a second, which neither --help nor a wrong setting need wait for.
    from app.entrypoints import processes  # noqa: PLC0415

    processes.run(processes.serve(settings))


@cli.command()
def worker() -> None:
    """Run a worker by itself."""
    settings = _prepared()
    from app.entrypoints import processes  # noqa: PLC0415

    processes.run(processes.work(settings))


@cli.command()
def migrate() -> None:
    """Bring the database's schema to the newest revision."""
    settings = _prepared()
    from app.entrypoints import processes  # noqa: PLC0415

    processes.run(processes.migrate(settings))


@cli.command()
def doctor() -> None:
    """Look for what would keep the service from running; exits with 1 when something does."""
    settings = _prepared()
    from app.entrypoints import processes  # noqa: PLC0415
    from app.entrypoints.doctor import examine  # noqa: PLC0415

    processes.run(examine(settings))


@cli.command()
def token() -> None:
    """Print the default bearer token, made now if there is none."""
    from app.entrypoints.identity import default_token  # noqa: PLC0415

    typer.echo(default_token(_prepared()))


@cli.command()
def simulate_provider(host: str = "127.0.0.1", port: int = 9900) -> None:
    """Serve the scripted provider over HTTP, in OpenAI's shape."""
    from app.entrypoints import simulate  # noqa: PLC0415

    simulate.run(host, port)


@failures.command("classify")
def classify_failures(
    file: Annotated[str, typer.Argument(help="JSON Lines; - is standard input.")],
) -> None:
    """Print the type of each failure and the rule that decided; exits with 1 after bad lines."""
    from app.entrypoints import classify  # noqa: PLC0415

    classify.run(file)


@wires.command("parse")
def parse_wires(file: Annotated[str, typer.Argument(help="JSON lines; - is stdin.")]) -> None:
    """Read recorded answers as live ones are read; a line of JSON for each."""
    from app.entrypoints.wires import parse_file  # noqa: PLC0415

    raise typer.Exit(parse_file(file))


def main() -> None:
    """The program's entry."""
    cli()


def _prepared(*, host: str | None = None, port: int | None = None) -> Settings:
    try:
        settings = load_settings(host=host, port=port)
    except InvalidSettingsError as error:
        sys.exit(f"turnkeeper: {error}")
    configure_logging(level=settings.log_level, form=settings.log_format)
    return settings
