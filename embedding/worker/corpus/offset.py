"""How far a corpus was read: carried by every push, kept by the server with its sequence number.

A process that starts again asks the server for the offset behind the last push that it has taken,
so that nothing is learnt twice and nothing is left out, whatever size the blocks were cut to.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from embedding.kernel.errors import InputError


@dataclass(frozen=True)
class Offset:
    """Where the reading of a share goes on.

    epoch       how often the share was read to its end, 0, 1, …
    line        number of the next line in the file, from 0
    tokens      tokens read so far, in all epochs
    characters  characters a token took of late, by which the next block is cut; 0: not known
    """

    epoch: int = 0
    line: int = 0
    tokens: int = 0
    characters: float = 0.0

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Offset:
        """Inverse of `str`, "" is the beginning; InputError for anything else."""
        if not text:
            return cls()
        try:
            offset = cls(**json.loads(text))
            whole = (offset.epoch, offset.line, offset.tokens)
            if not all(type(n) is int and n >= 0 for n in whole) or offset.characters < 0:
                raise ValueError
        except (ValueError, TypeError) as error:
            raise InputError(f"{text[:80]!r} is not an offset in a corpus.") from error
        return offset
