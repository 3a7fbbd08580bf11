"""Training and prediction on the machines of a Ray cluster: the only package that imports Ray.

`RayBackend` is what `LightDXML.fit(backend=...)` takes.
"""

from importlib.util import find_spec

if find_spec("ray") is None:
    raise ImportError('running on Ray needs ray: pip install "lightdxml[ray]"')

from lightdxml.cluster.backend import RayBackend

__all__ = ["RayBackend"]
