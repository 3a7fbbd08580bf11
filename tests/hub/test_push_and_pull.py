"""Models that are shared on a hub come back as they were, and nothing else comes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from lightdxml import LightDXML, ModelFolder, Predictor, load
from tests.hub.conftest import files_in
from tests.support.commands import run
from tests.support.forging import change_manifest
from tests.support.hub import FakeHub

# huggingface_hub passes files to its HTTP library in the old way.
pytestmark = pytest.mark.filterwarnings("ignore:.*content=.*:DeprecationWarning")
REPO = "alice/pets"


@pytest.fixture
def learned(tmp_path: Path, kept_model: LightDXML) -> Path:
    """A model that keeps its training data, and has learned."""
    kept_model.save(tmp_path / "learned")
    ModelFolder(tmp_path / "learned").learn(["a secretive horse"] * 3, [["horse"]] * 3)
    return tmp_path / "learned"


def share(hub: FakeHub, model: Path, **more: bytes) -> None:
    """Put a model into the hub, with further files."""
    hub.repo(REPO, files_in(model) | more)


def test_a_model_comes_back_as_it_was(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    shown = run("push", model, REPO, "--license", "mit", "--message", "first")
    assert "arrays.safetensors" in shown
    assert f"{hub.url}/{REPO}" in shown
    repo = hub.repos[REPO]
    assert set(repo.files) == {".gitattributes", "README.md", *files_in(model)}
    assert repo.messages[-1] == "first"
    assert "2 labels, trained on 40 documents" in run("pull", REPO, tmp_path / "again")
    assert files_in(tmp_path / "again") == files_in(model)
    assert "cat" in run("predict", tmp_path / "again", "-", "-k", 1, text="a purring cat")


def test_models_are_loaded_from_a_hub_and_pushed_in_python(
    hub: FakeHub, text_model: LightDXML, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    where: dict[str, Any] = {"endpoint": hub.url, "token": hub.token}
    assert text_model.push_to_hub(REPO, license="mit", private=True, **where).startswith(f"{hub.url}/{REPO}")
    assert hub.repos[REPO].private
    expected = text_model.predict("a purring cat")
    assert LightDXML.from_pretrained(REPO, **where).predict("a purring cat") == expected
    assert Predictor.from_pretrained(REPO, "main", **where).predict("a purring cat") == expected


def test_a_folder_is_loaded_as_it_is(model: Path) -> None:
    assert LightDXML.from_pretrained(model).predict("a cat", k=1) == ["cat"]
    assert Predictor.from_pretrained(str(model)).predict("a cat", k=1) == ["cat"]


def test_what_a_model_learned_from_is_shared_only_if_asked(hub: FakeHub, learned: Path, tmp_path: Path) -> None:
    assert "Training data and journal are not uploaded" in run("push", learned, REPO)
    assert not any(name.startswith("learning") for name in hub.repos[REPO].files)
    assert not any(b"secretive horse" in content for content in hub.repos[REPO].files.values())
    assert "texts of those that were learned later" in run("push", learned, REPO, "--with-training-data")
    assert "training data and journal: --with-training-data downloads them" in run("pull", REPO, tmp_path / "again")
    assert not (tmp_path / "again" / "learning").exists()
    run("pull", REPO, tmp_path / "all", "--with-training-data")
    assert files_in(tmp_path / "all") == files_in(learned)
    ModelFolder(tmp_path / "all").rollback(0)
    # What is no longer shared is removed from the repository.
    run("push", learned, REPO)
    assert not any(name.startswith("learning") for name in hub.repos[REPO].files)


def test_files_of_an_older_model_are_removed_in_the_same_commit(hub: FakeHub, model: Path) -> None:
    repo = hub.repo(REPO, {"concepts.json": b"{}", "notes.txt": b"mine"})
    run("push", model, REPO)
    assert len(repo.commits) == 2
    assert "concepts.json" not in repo.files
    assert repo.files["notes.txt"] == b"mine"


def test_a_branch_is_pushed_and_pulled(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    repo = hub.repo(REPO)
    run("push", model, REPO, "--revision", "trial")
    assert repo.files == {}
    with pytest.raises(ValueError, match="is not a model of lightdxml: it has no manifest"):
        run("pull", REPO, tmp_path / "again")
    run("pull", REPO, tmp_path / "again", "--revision", "trial")
    run("pull", REPO, tmp_path / "same", "--revision", repo.branches["trial"])
    assert files_in(tmp_path / "again") == files_in(tmp_path / "same") == files_in(model)


def test_a_dry_run_shows_everything_and_asks_nothing(hub: FakeHub, model: Path) -> None:
    shown = run("push", model, REPO, "--private", "--dry-run")
    assert "README.md" in shown
    assert "Nothing was uploaded" in shown
    assert hub.requests == []


def test_a_card_is_replaced_or_kept(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text("---\nlicense: mit\n---\n# Mine\n", encoding="utf-8")
    run("push", model, REPO, "--card", tmp_path / "own.md")
    assert hub.repos[REPO].files["README.md"].endswith(b"# Mine\n")
    run("push", model, REPO, "--keep-card")
    assert hub.repos[REPO].files["README.md"].endswith(b"# Mine\n")
    run("push", model, REPO)
    assert b"# pets" in hub.repos[REPO].files["README.md"]
    with pytest.raises(ValueError, match="exclude each other"):
        run("push", model, REPO, "--keep-card", "--card", tmp_path / "own.md")


def test_a_license_that_the_hub_does_not_know_is_one_sentence(hub: FakeHub, model: Path) -> None:
    with pytest.raises(ValueError, match=r'does not accept the model card: .*"license" must be one of them') as refused:
        run("push", model, REPO, "--license", "mine")
    assert "\n" not in str(refused.value)


def test_files_that_no_model_has_are_never_downloaded(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    foreign = dict.fromkeys(("setup.py", "a.pkl", "learning/x.py", "../out.json", "/abs.json", "a/b.json"), b"evil")
    hub.repo(REPO, files_in(model) | foreign)
    run("pull", REPO, tmp_path / "again", "--with-training-data")
    assert files_in(tmp_path / "again") == files_in(model)
    assert not any(name in request for request in hub.requests for name in foreign)


def test_a_model_is_replaced_only_with_force_and_only_by_a_good_one(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    share(hub, model)
    shutil.copytree(model, tmp_path / "mine")
    with pytest.raises(ValueError, match=r"holds a model already.*--force"):
        run("pull", REPO, tmp_path / "mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("years of work")
    with pytest.raises(ValueError, match="something other than a model"):
        run("pull", REPO, tmp_path / "other", "--force")
    damaged = bytearray((model / "arrays.safetensors").read_bytes())
    damaged[-1] ^= 1
    share(hub, model, **{"arrays.safetensors": bytes(damaged)})
    with pytest.raises(ValueError, match=rf"{REPO} is damaged \(arrays.safetensors was changed .*must push it again"):
        run("pull", REPO, tmp_path / "mine", "--force")
    with pytest.raises(ValueError, match="is damaged"):
        Predictor.from_pretrained(REPO)
    assert files_in(tmp_path / "mine") == files_in(model)
    assert not list(tmp_path.glob(".mine*"))
    share(hub, model)
    run("pull", REPO, tmp_path / "mine", "--force")


def test_what_a_model_has_learned_is_not_replaced_by_accident(hub: FakeHub, model: Path, learned: Path) -> None:
    share(hub, model)
    with pytest.raises(ValueError, match="give --discard-lessons to replace the model"):
        run("pull", REPO, learned, "--force")
    run("pull", REPO, learned, "--discard-lessons")
    assert files_in(learned) == files_in(model)


def test_damaged_training_data_are_refused(hub: FakeHub, learned: Path, tmp_path: Path) -> None:
    for name in ("learning/000001.json.gz", "learning/base/label_names.json", "learning/kept.safetensors"):
        share(hub, learned, **{name: b"[]"})
        with pytest.raises(ValueError, match=rf"{REPO}\S* is damaged"):
            run("pull", REPO, tmp_path / "again", "--with-training-data", "--force")
        run("pull", REPO, tmp_path / "again", "--force")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "has format 99 and this version reads 3: update lightdxml"),
        ({"files": {}}, "is damaged .*: its owner must push it again"),
        ({"files": {"arrays.safetensors": {"bytes": 1}}}, "has .* bytes and should have 1"),
        ({"files": {"arrays.safetensors": {"bytes": "1"}}}, "gives no sizes of files"),
        ({"files": {"concepts.json": {"bytes": 1}}}, r"concepts.json is missing"),
    ],
)
def test_models_that_cannot_be_read_are_refused_before_they_are_downloaded(
    hub: FakeHub, model: Path, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    change_manifest(model, lambda manifest: manifest.update(change))
    share(hub, model)
    with pytest.raises(ValueError, match=f"{REPO} {message}" if message.startswith("has f") else message) as refused:
        run("pull", REPO, tmp_path / "again")
    assert "\n" not in str(refused.value)
    assert not any("GET" in one and "arrays" in one for one in hub.requests)
    assert not (tmp_path / "again").exists()


def test_a_huge_manifest_is_not_downloaded(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(REPO, {"manifest.json": b" " * ((1 << 24) + 1)})
    with pytest.raises(ValueError, match=r"is not a model of lightdxml: its manifest.json has 16,777,217 bytes"):
        run("pull", REPO, tmp_path / "again")
    assert hub.sent == 0


def test_a_repository_of_another_kind_is_no_model(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo(REPO, {"config.json": b"{}", "manifest.json": b'{"name": "a web app"}'})
    with pytest.raises(ValueError, match=f"{REPO} is not a model: its manifest.json names no format"):
        run("pull", REPO, tmp_path / "again")


def test_access_is_refused_in_one_sentence_without_the_token(
    hub: FakeHub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repo("alice/private", files_in(model), private=True)
    hub.repo("alice/gated", files_in(model), gated=True)
    share(hub, model)
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    cases: dict[tuple[Any, ...], str] = {
        ("pull", "alice/none", tmp_path / "again"): "there is no model alice/none that you may read: .*hf auth login",
        ("pull", "alice/private", tmp_path / "again"): "there is no model alice/private that you may read",
        ("pull", "alice/gated", tmp_path / "again"): "alice/gated is gated: accept its terms",
        ("pull", REPO, tmp_path / "again", "--revision", "old"): f"{REPO} has no revision 'old'",
        ("push", model, REPO): r"refuses access to alice/pets \(401\): .*hf auth login",
    }
    for command, message in cases.items():
        with pytest.raises(OSError, match=message) as refused:
            run(*command)
        assert "\n" not in str(refused.value)
        assert "hf_wrong" not in str(refused.value)
    monkeypatch.setenv("HF_TOKEN", hub.token)
    with pytest.raises(OSError, match=r"refuses access to bob/pets \(403\)"):
        run("push", model, "bob/pets")
    for name in ("my model", "a/b/c", "-a", "a--b"):
        with pytest.raises(ValueError, match="is not the name of a repository: write OWNER/NAME"):
            Predictor.from_pretrained(name)


def test_without_a_hub_the_cache_is_used(
    hub: FakeHub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    share(hub, model)
    expected = Predictor.from_pretrained(REPO).predict("a purring cat")
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with caplog.at_level("INFO", logger="lightdxml"):
        assert Predictor.from_pretrained(REPO).predict("a purring cat") == expected
    assert "from the cache" in caplog.text
    run("pull", REPO, tmp_path / "again")
    assert files_in(tmp_path / "again") == files_in(model)
    with pytest.raises(OSError, match="HF_HUB_OFFLINE is set; alice/other is not in the cache"):
        run("pull", "alice/other", tmp_path / "other")
    assert hub.requests == []


def test_a_hub_that_cannot_be_reached_is_one_sentence(tmp_path: Path, hub: FakeHub, model: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    with pytest.raises(OSError, match=f"{nowhere} cannot be reached for {REPO} .*check the network, or HF_ENDPOINT"):
        Predictor.from_pretrained(REPO, endpoint=nowhere)
    with pytest.raises(OSError, match=f"{nowhere} cannot be reached"):
        load(model).push_to_hub(REPO, endpoint=nowhere)


def test_an_interrupted_download_goes_on_where_it_stopped(
    hub: FakeHub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    share(hub, model)
    hub.cut = 10_000
    run("pull", REPO, tmp_path / "again")
    assert files_in(tmp_path / "again") == files_in(model)
    # Files are downloaded at the same time: any of the large ones may be the first, which is cut.
    downloads = [one for one in hub.requests if one.startswith("GET") and "/resolve/" in one]
    assert len(downloads) == len(set(downloads)) + 1
    assert hub.sent == sum(map(len, files_in(model).values()))


def test_a_predictor_from_a_hub_imports_no_more_than_one_from_a_folder() -> None:
    code = (
        "import sys, lightdxml.predictor, lightdxml.hub.fetch;"
        "print({'scipy.sparse', 'sklearn', 'huggingface_hub', 'lightdxml.training.fit'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_commands_in_a_process_of_their_own_say_one_line(hub: FakeHub, tmp_path: Path) -> None:
    """As a user sees it: nothing of huggingface_hub's traceback."""
    from tests.support.commands import COMMAND

    found = subprocess.run(
        [*COMMAND, "pull", "alice/none", str(tmp_path / "again")],
        env={"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 1
    assert found.stderr.startswith("error: there is no model alice/none that you may read")
    assert json.dumps(found.stderr).count("\\n") == 1
