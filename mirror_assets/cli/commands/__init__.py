"""The command line of `mirror-assets`: its options, help texts, and the functions that the commands call.

A command imports its function when it runs, so that `--help` is fast, and `plan` and `status` load no Spark.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mirror_assets.cli.commands.inspect import check, feed, preview, reconcile, status
from mirror_assets.cli.commands.mirror import drop, plan, rebuild, repair, replicate, run
from mirror_assets.cli.commands.setup import doctor, download_jars
from mirror_assets.cli.exit import Exit
from mirror_assets.cli.json_log import use_json
from mirror_assets.cli.options import CONFIG_HELP, PATH
from mirror_assets.feature import features


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 click's signature
        """Return the commands in the order in which they were added, not of the alphabet."""
        return list(self.commands)


@click.group(
    cls=_InOrder,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True},
    epilog="\b\nExit codes: 0 fine; 1 a check or a table failed; 2 the configuration or the command line is wrong.\n"
    'Completion in bash: eval "$(_MIRROR_ASSETS_COMPLETE=bash_source mirror-assets)"; also zsh_source, fish_source.',
)
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", help="Format of messages on the error stream."
)
@click.option("--config", type=PATH, help=CONFIG_HELP)
@click.version_option(package_name="mirror-assets", message="%(prog)s %(version)s")
def app(log: str, config: Path | None) -> None:  # noqa: ARG001 the commands read it from the context
    """Mirror Delta tables into Microsoft Fabric."""
    use_json(is_on=log == "json")


@app.result_callback()
def _flush(code: Exit, **_: object) -> Exit:
    """Write all output here, where click ends the process quietly if its reader has ended (`| head`)."""
    sys.stdout.flush()
    return code


for _command in (
    *(plan, run, status, reconcile, feed, preview, check, doctor, download_jars),
    *(replicate, repair, rebuild, drop),
    *(command for feature in features() for command in feature.commands()),
):
    app.add_command(_command)
