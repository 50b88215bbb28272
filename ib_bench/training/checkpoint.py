"""Checkpoints of the lanes (orbax) with the scheduler's state beside them. Knows no search."""

import logging
from collections.abc import Callable
from typing import Any

import orbax.checkpoint as ocp
from etils import epath

logger = logging.getLogger(__name__)


class Checkpoint:
    """The newest checkpoint of one program's lanes; each save replaces the one before."""

    def __init__(self, folder: epath.Path):
        # Orbax takes no relative path, and a path of an object store is none.
        self._folder = folder if "://" in str(folder) else folder.resolve()
        options = ocp.CheckpointManagerOptions(
            max_to_keep=1, enable_async_checkpointing=False, create=True
        )
        # Orbax counts its own steps at length; a study has its own log.
        logging.getLogger("absl").setLevel(logging.ERROR)
        self._manager = ocp.CheckpointManager(self._folder, options=options)

    def save(self, lanes: Any, scheduler: dict[str, Any]) -> None:
        """Writes host arrays (a pytree) and plain JSON, both or neither."""
        step = (self._manager.latest_step() or 0) + 1
        lanes, scheduler = ocp.args.StandardSave(lanes), ocp.args.JsonSave(scheduler)
        self._manager.save(step, args=ocp.args.Composite(lanes=lanes, scheduler=scheduler))
        self._manager.wait_until_finished()

    def load(self, shapes_of: Callable[[dict], Any]) -> tuple[Any, dict[str, Any]] | None:
        """Reads the newest checkpoint.

        Args:
          shapes_of: the shapes of the lanes, from the scheduler's state.

        Returns:
          (lanes, scheduler), or None where there is none that can be read.
        """
        step = self._manager.latest_step()
        if step is None:
            return None
        try:
            wanted = ocp.args.Composite(scheduler=ocp.args.JsonRestore())
            scheduler = self._manager.restore(step, args=wanted).scheduler
            wanted = ocp.args.Composite(lanes=ocp.args.StandardRestore(shapes_of(scheduler)))
            lanes = self._manager.restore(step, args=wanted).lanes
        except (ValueError, KeyError, TypeError, OSError) as error:
            reason = str(error).splitlines()[0][:200]
            logger.warning(
                "checkpoint %s cannot be read (%s); runs that were under way start again",
                self._folder,
                reason,
            )
            return None
        return lanes, scheduler

    def remove(self) -> None:
        """Deletes all checkpoints of this program: its cells are done."""
        self._manager.close()
        if self._folder.exists():
            self._folder.rmtree()
