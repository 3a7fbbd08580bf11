"""The connection to a hub, and its errors in one sentence each. Tokens are never shown."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

from lightdxml import __version__

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_REPO = re.compile(r"(?:\w[\w.-]{0,95}/)?\w[\w.-]{0,95}", re.ASCII)
_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


class UnreachableError(OSError):
    """A hub that does not answer, or must not be asked."""


@dataclass(frozen=True)
class Hub:
    """Where models are shared, and who asks.

    Attributes
    ----------
    endpoint
        The address of the hub; None for that of `HF_ENDPOINT` or, without it, https://huggingface.co.
    token
        The user's token; None for that of `HF_TOKEN` or of `hf auth login`, False for none.
    """

    endpoint: str | None = None
    token: str | bool | None = field(default=None, repr=False)

    def api(self) -> HfApi:
        """Return huggingface_hub's client; raise an `ImportError` that says how to install it, if it is missing."""
        require_hub()
        from huggingface_hub import HfApi

        return HfApi(endpoint=self.endpoint, token=self.token, library_name="lightdxml", library_version=__version__)


DEFAULT_HUB = Hub()


def require_hub() -> None:
    """Raise an `ImportError` that says how to install huggingface_hub, if it is missing."""
    if find_spec("huggingface_hub") is None:
        raise ImportError('sharing models needs huggingface_hub: pip install "lightdxml[hub]"')


def hide_bars() -> None:
    """Show no progress bars of huggingface_hub where nobody sees them, unless the user has chosen."""
    if not sys.stderr.isatty():
        # Read when it is imported.
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def check_repo(repo: str) -> None:
    """Raise a `ValueError` if this cannot be the name of a repository.

    >>> check_repo("alice/my model")
    Traceback (most recent call last):
    ValueError: 'alice/my model' is not the name of a repository: write OWNER/NAME, of letters, digits, - _ and .
    """
    if not _REPO.fullmatch(repo) or "--" in repo or ".." in repo:
        raise ValueError(
            f"{repo!r:.200} is not the name of a repository: write OWNER/NAME, of letters, digits, - _ and ."
        )


@contextmanager
def as_our_errors(api: HfApi, repo: str, revision: str | None = None) -> Iterator[None]:
    """Raise errors of huggingface_hub inside the `with` block as one sentence each.

    Addresses of files are not shown, as they may be signed. A hub that does not answer gives an `UnreachableError`.
    """
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError as error:
        raise ValueError(f"{repo!r:.200} is not the name of a repository: write OWNER/NAME") from error
    except errors.GatedRepoError as error:
        raise OSError(f"{repo} is gated: accept its terms on its page, and {_LOG_IN}") from error
    except errors.RepositoryNotFoundError as error:
        raise OSError(
            f"there is no model {repo} that you may read: check the name; if it is private, {_LOG_IN}"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise OSError(f"{repo} has no revision {revision!r}: give a branch, a tag or a commit") from error
    except errors.EntryNotFoundError as error:
        if isinstance(error, errors.LocalEntryNotFoundError):
            raise UnreachableError(
                f"{api.endpoint} cannot be reached, and {repo} is not complete in the cache"
            ) from error
        raise ValueError(f"{repo} lacks a file of a model: its owner must push it again") from error
    except errors.OfflineModeIsEnabled as error:
        raise UnreachableError(f"{api.endpoint} is not asked for {repo}, because HF_HUB_OFFLINE is set") from error
    except errors.HfHubHTTPError as error:
        raise _refused(api, repo, error) from error
    except errors.HTTPError as error:  # type: ignore[attr-defined]
        raise _unreachable(api, repo, error) from error
    except RuntimeError as error:
        # What huggingface_hub raises in place of the error of an upload.
        cause = error.__cause__
        if isinstance(cause, errors.HfHubHTTPError):
            raise _refused(api, repo, cause) from error
        raise _unreachable(api, repo, cause or error) from error


def _unreachable(api: HfApi, repo: str, error: BaseException) -> UnreachableError:
    what = type(error).__name__
    return UnreachableError(f"{api.endpoint} cannot be reached for {repo} ({what}): check the network, or HF_ENDPOINT")


def _refused(api: HfApi, repo: str, error: OSError) -> OSError:
    """Return what the answer of a hub means."""
    status: int = error.response.status_code  # type: ignore[attr-defined]
    if status in (401, 403):
        return OSError(f"{api.endpoint} refuses access to {repo} ({status}): {_LOG_IN} to a token that may do this")
    if status == 429:
        return OSError(f"{api.endpoint} takes no more requests now ({status}): try again later")
    if status >= 500:
        return UnreachableError(f"{api.endpoint} cannot serve {repo} now ({status}): try again later")
    said = " ".join(str(getattr(error, "server_message", None) or "no reason given").split())
    return OSError(f"{api.endpoint} refuses the request for {repo} ({status}, {said:.200}): check its settings")
