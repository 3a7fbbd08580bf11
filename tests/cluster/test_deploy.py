"""The examples of clusters in `deploy`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason='needs ray: pip install "lightdxml[ray]"')
import yaml  # type: ignore[import-untyped]

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_ray_accepts_the_cluster_of_own_machines() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = yaml.safe_load((DEPLOY / "ray-cluster.yaml").read_text(encoding="utf-8"))
    validate_config(prepare_config(config))


def test_the_job_of_kuberay_mounts_the_data_in_all_pods() -> None:
    job = yaml.safe_load((DEPLOY / "kuberay.yaml").read_text(encoding="utf-8"))
    cluster = job["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        mounted = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert mounted == {volume["name"]: "/shared" for volume in pod["volumes"]}


@pytest.mark.parametrize("name", ["ray-cluster.yaml", "kuberay.yaml"])
def test_commands_have_options_that_exist(name: str) -> None:
    from typer.main import get_command

    from lightdxml.cli import application

    text = re.sub(r"\n\s+(?=--)", " ", (DEPLOY / name).read_text(encoding="utf-8"))
    found = re.findall(r"lightdxml (train [^'`\n]+)", text)
    assert found
    command: Any = get_command(application(["train", "info"]))
    train = command.commands["train"]
    for line in found:
        arguments = shlex.split(line)[1:]
        known = {option for parameter in train.params for option in parameter.opts}
        assert {one for one in arguments if one.startswith("--")} <= known
