"""Plan: which variants every content is to have; they are written down together with the job that makes them."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from imprint.engine.queue import Job, enqueue
from imprint.images.recipes import RECIPES, Recipe
from imprint.store.query import Link, Nothing, query

ENTRYPOINT = "derive"

PLAN = query("derive_plan", Nothing)


def wanted() -> Sequence[Recipe]:
    """List the recipes that every content is made into."""
    return tuple(RECIPES.values())


async def plan(connection: Link, content: UUID) -> int:
    """Write down the variants that a content does not have yet, and put its job in, in the caller's transaction."""
    recipes = wanted()
    await PLAN.run(
        connection,
        content,
        [recipe.variant for recipe in recipes],
        [recipe.version for recipe in recipes],
        [json.dumps(asdict(recipe)) for recipe in recipes],
    )
    return await enqueue(connection, [Job(ENTRYPOINT, str(content))])
