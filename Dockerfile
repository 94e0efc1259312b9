FROM python:3.12-slim AS build
RUN python -m venv /opt/venv
COPY dist/*.whl /tmp/
RUN /opt/venv/bin/pip install "$(echo /tmp/rankgrove-*.whl)[serve]"
ENV NUMBA_CACHE_DIR=/opt/kernels NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=
RUN /opt/venv/bin/rankgrove compile predict serve && chmod -R a+rX /opt/kernels

FROM python:3.12-slim
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/kernels /opt/kernels
COPY web.rg /srv/web.rg
ENV NUMBA_CACHE_DIR=/opt/kernels NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=
USER nobody
CMD ["/opt/venv/bin/rankgrove", "serve", "/srv/web.rg", "--host", "0.0.0.0"]
