# The service, with a model as a volume:
#   docker build --tag lightdxml .
#   docker run --rm --read-only --publish 127.0.0.1:5000:5000 --volume ./my-model:/model:ro lightdxml
# docs/how-to/serving.md says more. `.ci/image` runs these instructions without Docker, and checks the result.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS base
# Compiled kernels are used only on CPUs with exactly the features that they were compiled for. Elsewhere, every start
# would compile them again. So they are compiled for any CPU of the architecture. Models of the paper's views are faster
# with AVX2: --build-arg CPU=x86-64-v3 --build-arg CPU_FEATURES=+avx,+avx2,+fma,+f16c
ARG CPU=generic
ARG CPU_FEATURES=
ENV VENV=/opt/lightdxml NUMBA_CPU_NAME=$CPU NUMBA_CPU_FEATURES=$CPU_FEATURES
ENV PATH=$VENV/bin:$PATH NUMBA_CACHE_DIR=$VENV/kernels

FROM base AS build
WORKDIR /source
COPY . .
# The package is this folder, which has no version to pin; pyproject.toml has the versions of what it needs.
# hadolint ignore=DL3013
RUN python -m venv --without-pip "$VENV" \
    && pip --python "$VENV/bin/python" install --no-cache-dir ".[serve,languages]"
# The folder of compiled kernels belongs to root: whoever can write it can run code as the service.
RUN python deploy/warm_up.py

FROM base
COPY --from=build $VENV $VENV
# Any user will do: the service writes no files.
USER 10001:10001
VOLUME /model
EXPOSE 5000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["python", "-c", "from urllib.request import ProxyHandler, build_opener; build_opener(ProxyHandler({})).open('http://127.0.0.1:5000/v2/health/ready', timeout=2)"]
ENTRYPOINT ["lightdxml", "serve"]
CMD ["/model", "--host", "0.0.0.0"]
